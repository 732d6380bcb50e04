#compdef patterm
# zsh completion for patterm: `patterm completions zsh`.
_patterm() {
    local -a candidates
    candidates=("${(@f)$("${words[1]}" complete --shell zsh --index $((CURRENT - 1)) -- "${words[@]}" 2>/dev/null)}")
    candidates=("${(@)candidates:#}")
    if (( ${#candidates} )); then
        _describe -V patterm candidates
    else
        _files
    fi
}
if [[ "${funcstack[1]}" = _patterm ]]; then
    _patterm "$@"
else
    compdef _patterm patterm
fi
