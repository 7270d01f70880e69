import { z } from 'zod';
import type { TerminalObservation } from '@slipway/agent-protocol/events.js';
import type { ShellResult, ShellSession } from './shell-session.js';
import { builtInTool, type Tool } from './tool.js';

const DEFAULT_TIMEOUT_SECONDS = 300;
const MAX_TIMEOUT_SECONDS = 3_600;

const schema = z.object({
  command: z.string().describe('The command for bash. Join several commands with && or ;'),
  is_input: z
    .boolean()
    .default(false)
    .describe('The command is text, or C-c, C-d or C-z, for a program that waits in the foreground.'),
  timeout: z
    .number()
    .positive()
    .max(MAX_TIMEOUT_SECONDS)
    .nullish()
    .describe(`Seconds after which the command is interrupted; ${DEFAULT_TIMEOUT_SECONDS} by default.`),
  reset: z
    .boolean()
    .default(false)
    .describe('Ends the shell and everything that it started first, and runs the command in a new one.'),
});

export function terminalTool(session: ShellSession): Tool {
  return builtInTool('Terminal', {
    name: 'terminal',
    description:
      'Run a command in a bash shell that stays between calls: folder, variables and background jobs are kept. Nobody ' +
      'can type into a program, so pass flags that answer its questions. Start servers in the background ' +
      '(`server > server.log 2>&1 &`). A command that takes longer than its timeout is interrupted, with all that it has started; what earlier ' +
      'commands have started goes on. ' +
      'Of a long output you see the beginning and the end.',
    needsConfirmation: true,
    schema,
    toAction: ({ command, is_input, timeout, reset }) => ({
      kind: 'TerminalAction',
      command,
      is_input,
      timeout: timeout ?? null,
      reset,
    }),
    run: async ({ command, is_input: isInput, timeout, reset }, { environment, signal }) => {
      if (isInput && !reset) {
        return nothingWaits(command, session.workingDir);
      }
      const seconds = timeout ?? DEFAULT_TIMEOUT_SECONDS;
      if (reset) {
        await session.reset();
      }
      const result = await session.run({ command, timeoutMs: seconds * 1000, environment, signal });
      return toObservation(command, seconds, result);
    },
  });
}

/** Each call ends with its command, so no program is left that could read. Run as a command, `y` or `C-c` could do anything. */
function nothingWaits(command: string, workingDir: string): TerminalObservation {
  const advice = /^C-[a-z]$/i.test(command.trim())
    ? 'the last command has ended. `jobs` lists what runs in the background, and `kill %1` ends one of that.'
    : "give a program its input as you run it, such as `printf 'y\\n' | program`.";
  return toObservation(command, 0, {
    output: `[Nothing was sent: no program waits in the foreground; ${advice}]`,
    exitCode: 1,
    ending: 'exited',
    workingDir,
    shellEnded: false,
  });
}

function toObservation(command: string, seconds: number, result: ShellResult): TerminalObservation {
  const note = describeEnd(seconds, result);
  const text = [result.output.replace(/\n$/, ''), note].filter((part) => part !== '').join('\n');
  return {
    kind: 'TerminalObservation',
    content: [{ type: 'text', text }],
    is_error: result.exitCode !== 0,
    command,
    exit_code: result.exitCode ?? -1,
    timeout: result.ending === 'timeout',
    metadata: {
      exit_code: result.exitCode ?? -1,
      pid: -1,
      working_dir: result.workingDir,
      prefix: '',
      suffix: note === '' ? '' : `\n${note}`,
    },
  };
}

function describeEnd(seconds: number, { ending, exitCode, shellEnded, workingDir }: ShellResult): string {
  const fresh = `The next command gets a new shell in ${workingDir}.`;
  if (ending !== 'exited') {
    const when = ending === 'timeout' ? ` after ${seconds} s` : '';
    return shellEnded
      ? `[The command was ended${when}, with everything that the shell had started. ${fresh}]`
      : `[The command was interrupted${when}, with all that it had started. The shell goes on in ${workingDir}.]`;
  }
  return shellEnded
    ? `[The shell ended with exit code ${exitCode}. Background jobs ended with it. ${fresh}]`
    : `[Exit code ${exitCode}, folder ${workingDir}]`;
}
