/**
 * Runs `.openhands/setup.sh` of the repository that is the current folder, unless it succeeded before. An attempt that
 * an earlier worker began is waited for: the script never runs twice at the same time.
 */
export const SETUP_SCRIPT = `
[ -f .openhands/setup.sh ] || exit 0
marker="$(git rev-parse --absolute-git-dir)/slipway-setup-done" || exit
exec 9>"$marker.lock"
if command -v flock >/dev/null; then flock 9; fi
[ -e "$marker" ] && exit 0
bash .openhands/setup.sh </dev/null 9>&-
code=$?
[ "$code" -eq 0 ] && : >"$marker"
exit "$code"
`;

/**
 * Makes `.openhands/pre-commit.sh` of the repository that is the current folder its pre-commit hook. A hook that is there
 * already goes first. Repeatable.
 */
export const PRE_COMMIT_HOOK = `
[ -f .openhands/pre-commit.sh ] || exit 0
hooks="$(git rev-parse --git-path hooks)" && mkdir -p "$hooks" || exit
hook="$hooks/pre-commit"
if [ -e "$hook" ] && ! grep -q 'slipway pre-commit' "$hook"; then mv "$hook" "$hook.local" || exit; fi
cat >"$hook.new" <<'HOOK' || exit
#!/bin/sh
# slipway pre-commit: the repository's own hook, then .openhands/pre-commit.sh
local_hook="$(git rev-parse --git-path hooks)/pre-commit.local"
if [ -x "$local_hook" ]; then "$local_hook" "$@" || exit; fi
exec bash "$(git rev-parse --show-toplevel)/.openhands/pre-commit.sh" "$@"
HOOK
chmod 755 "$hook.new" && mv "$hook.new" "$hook"
`;
