//! Servers in containers, with real engines that each test starts for itself: Debian's dockerd,
//! podman and containerd, with their own folders and sockets, and images built here.

mod all_engines;
mod containerd;
mod docker;
mod engine;
mod harness;
mod image;
mod podman;
mod program;
