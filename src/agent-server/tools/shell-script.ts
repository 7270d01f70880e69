/**
 * What the shell of a terminal runs: commands come one by one over descriptor 3, each ended by a zero byte, and are
 * evaluated in this very shell, so that folder, variables, functions and background jobs stay. After each one it
 * says on its own standard output, after all that the command wrote there, `\0mark\0status\0folder\0`.
 *
 * Commands read nothing from their standard input and cannot reach the shell's own descriptors. `set -e` and `exit`
 * end the shell; the next command gets a new one.
 */
export const SHELL_SCRIPT = `
exec 9>&1
while IFS= builtin read -r -d '' -u 3 __slipway_mark && IFS= builtin read -r -d '' -u 3 __slipway_command; do
  builtin eval "$__slipway_command" </dev/null >&9 2>&9 3<&- 9>&-
  builtin printf '\\0%s\\0%d\\0%s\\0' "$__slipway_mark" "$?" "$PWD" >&9
done
`;

/** Text that a shell reads as exactly this value. */
export function quoteForShell(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`;
}

/** Assignments that bring the variables of a running shell up to date; names that no shell can have are left out. */
export function exportChanges(before: Record<string, string>, after: Record<string, string>): string {
  const changed = Object.entries(after).filter(
    ([name, value]) => before[name] !== value && /^[A-Za-z_][A-Za-z0-9_]*$/.test(name),
  );
  const gone = Object.keys(before).filter((name) => !(name in after));
  return [
    ...changed.map(([name, value]) => `export ${name}=${quoteForShell(value)}`),
    ...gone.map((name) => `unset ${name}`),
  ]
    .map((line) => `${line}\n`)
    .join('');
}
