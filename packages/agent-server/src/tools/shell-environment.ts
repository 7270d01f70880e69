import { SETUP_ENVIRONMENT } from '@slipway/agent-protocol/git.js';

export function quoteForShell(value: string): string {
  return `'${value.replaceAll("'", `'\\''`)}'`;
}

/**
 * A bash script that exports what a repository's setup script has exported, except the variables in `own`. It runs
 * where tools run: the repository may set variables such as `LD_PRELOAD`, and tools may change the file.
 */
export function loadSetup(folder: string, own: readonly string[]): string {
  const file = quoteForShell(`${folder}/.git/${SETUP_ENVIRONMENT}`);
  const kept = quoteForShell(` ${own.join(' ')} `);
  return (
    `if [ -f ${file} ]; then while IFS= builtin read -r __slipway_line; do ` +
    `case ${kept} in *" \${__slipway_line%%=*} "*) ;; *) builtin eval "export $__slipway_line" ;; esac; ` +
    `done <${file}; unset __slipway_line; fi 2>/dev/null\n`
  );
}

/** Names of the variables that are not those of every tool, such as secrets. */
export function ownVariables(
  environment: Readonly<Record<string, string>>,
  base: Readonly<Record<string, string>>,
): string[] {
  return Object.keys(environment).filter((name) => environment[name] !== base[name]);
}
