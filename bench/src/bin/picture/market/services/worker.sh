#!/bin/sh
echo waiting for jobs
n=0
while sleep 2; do n=$((n + 1)); echo "job $n done"; done
