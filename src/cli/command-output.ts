import { Command, CommanderError } from '@commander-js/extra-typings';
import { errorCode, errorMessage, errorStack } from '@slipway/common/errors/error-message.js';
import { exitProcess } from '@slipway/common/processes/end-processes.js';
import { DomainError } from '../common/errors/domain-error.js';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { EmbeddedPostgresError } from '@slipway/embedded-postgres/programs.js';

/** Results go to standard output for pipes, notes to standard error for the operator. */
export interface CommandOutput {
  result(line: string): void;
  note(line: string): void;
}

export const TERMINAL: CommandOutput = {
  result: (line) => process.stdout.write(`${disarmed(line)}\n`),
  note: (line) => process.stderr.write(`${disarmed(line)}\n`),
};

/** Control characters, and those that show text in another order than it has. */
const COMMANDS = /[^\P{Cc}\n\t]|[\u202a-\u202e\u2066-\u2069]/gu;

/** Hosts, models and strangers choose texts that are shown here. Written as JSON writes them, they mean the same there. */
function disarmed(line: string): string {
  return line.replaceAll(
    COMMANDS,
    (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`,
  );
}

/** A reader that has enough, such as `head`, is no failure; of the log of a service it would be. */
export function endWithReader(): void {
  process.stdout.on('error', (error) => {
    if (errorCode(error) !== 'EPIPE') {
      throw error;
    }
    exitProcess(EXIT.done);
  });
}

/** Exit statuses of `slipway`; scripts depend on them. */
export const EXIT = { done: 0, failed: 1, usage: 2, unreachable: 3, notAllowed: 4 } as const;

/** Ends a command with one line for people and a status for programs. */
export class CommandError extends Error {
  constructor(
    message: string,
    readonly code: keyof typeof EXIT = 'failed',
  ) {
    super(message);
  }
}

/** The message never repeats a value that was given, which may be a key. */
export class UsageError extends CommandError {
  override readonly code = 'usage';
}

const FOR_OPERATORS = [CommandError, DomainError, ConfigError, EmbeddedPostgresError];

/** One line for what an operator can fix, the stack for everything else. */
export function failureText(error: unknown): string {
  return FOR_OPERATORS.some((type) => error instanceof type) ? errorMessage(error) : errorStack(error);
}

export function newProgram(name: string, output: CommandOutput): Command {
  return new Command(name).exitOverride().configureOutput({
    writeOut: (text) => output.result(text.trimEnd()),
    writeErr: (text) => output.note(text.trimEnd()),
  });
}

/** Runs a command line, and returns its exit status; `name` begins the line about a failure. */
export async function runProgram(
  program: Pick<Command, 'parseAsync'>,
  args: readonly string[],
  name: string,
  output: CommandOutput,
): Promise<number> {
  try {
    await program.parseAsync(args, { from: 'user' });
    return EXIT.done;
  } catch (error) {
    if (error instanceof CommanderError) {
      return error.exitCode === 0 ? EXIT.done : EXIT.usage;
    }
    output.note(`${name}: ${failureText(error)}`);
    return error instanceof CommandError ? EXIT[error.code] : EXIT.failed;
  }
}

/** Prints a list as JSON for programs, else as a table with a member of the row, or what is made of it, in each column. */
export function printRows<Row>(
  { output, json }: { output: CommandOutput; json: boolean },
  rows: readonly Row[],
  columns: Readonly<Record<string, keyof Row | ((row: Row) => string)>>,
): void {
  const cells = (row: Row): string[] =>
    Object.values(columns).map((each) => (typeof each === 'function' ? each(row) : String(row[each] ?? '')));
  const lines = json ? [JSON.stringify(rows)] : textTable([Object.keys(columns), ...rows.map(cells)]);
  lines.forEach((line) => output.result(line));
}

/** Aligned columns, a line for each row; the first row is the header. */
export function textTable(rows: readonly (readonly string[])[]): string[] {
  const shown = rows.map((row) => row.map((cell) => cell.replaceAll(/\p{Cc}/gu, '\u{fffd}')));
  const widths = shown[0]?.map((_, column) => Math.max(...shown.map((row) => row[column]?.length ?? 0)));
  const padded = shown.map((row) => row.map((cell, column) => cell.padEnd(widths?.[column] ?? 0)));
  return padded.map((row) => row.join('  ').trimEnd());
}
