# fish completion for patterm: `patterm completions fish`.
function __patterm_complete
    set -l before (commandline --tokenize --cut-at-cursor --current-process)
    set -l current (commandline --current-token --cut-at-cursor)
    set -l candidates ($before[1] complete --shell fish --index (count $before) -- $before $current 2>/dev/null)
    if test (count $candidates) -gt 0
        printf '%s\n' $candidates
    else
        __fish_complete_path "$current"
    end
end
complete --command patterm --no-files --keep-order --arguments '(__patterm_complete)'
