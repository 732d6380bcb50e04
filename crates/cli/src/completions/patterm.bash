# bash completion for patterm: `patterm completions bash`.
_patterm() {
    local line words=()
    while IFS= read -r line; do
        printf -v line %q "$line"
        words+=("$line")
    done < <("${COMP_WORDS[0]}" complete --shell bash --index "$COMP_CWORD" -- "${COMP_WORDS[@]}" 2>/dev/null)
    COMPREPLY=("${words[@]}")
}
# Without candidates, bash completes files.
complete -o bashdefault -o default -F _patterm patterm
