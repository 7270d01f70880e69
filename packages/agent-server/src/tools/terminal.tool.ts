import { z } from 'zod';
import type { TerminalObservation } from '@slipway/agent-protocol/events.js';
import type { ShellResult, ShellSession } from './shell-session.js';
import { builtInTool, type Tool } from './tool.js';

const DEFAULT_TIMEOUT_SECONDS = 300;
const MAX_TIMEOUT_SECONDS = 3_600;
/** Linux cuts longer ones (termios(3), canonical mode). */
const MAX_LINE_BYTES = 4_095;

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
      'Run a command in a bash shell that stays between calls: folder, variables and background jobs are kept. Pass ' +
      'flags that answer the questions of programs. One that waits for input goes on: answer with is_input, where C-c, C-d and C-z ' +
      'are keys, and an empty text waits longer. Start servers in the background ' +
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
      const seconds = timeout ?? DEFAULT_TIMEOUT_SECONDS;
      const limits = { timeoutMs: seconds * 1000, isPatient: typeof timeout === 'number', signal };
      if (reset) {
        await session.reset();
      } else {
        const types = isInput || (command.trim() === '' && session.waiting !== null);
        const refusal = whyRefused(session, command, types);
        if (refusal !== null) {
          return refused(command, refusal, session.workingDir);
        }
        if (types) {
          return toObservation(command, seconds, await session.type(command, limits));
        }
      }
      return toObservation(command, seconds, await session.run({ command, environment, ...limits }));
    },
  });
}

/** Run as a command, `y` or `C-c` could do anything; sent to a program, a command too. */
function whyRefused({ waiting }: ShellSession, command: string, types: boolean): string | null {
  const key = /^C-[a-z]$/i.exec(command.trim())?.[0].toUpperCase();
  if (!types) {
    return (
      waiting &&
      'Not run: the last command still waits for input. Answer with is_input, end it with C-c, or reset the shell.'
    );
  }
  if (waiting === null) {
    return key === undefined
      ? 'Nothing was sent: no program waits in the foreground. Run the program, and send its input once it waits.'
      : 'Nothing was sent: no program waits in the foreground; the last command has ended. `jobs` lists what runs in the background, and `kill %1` ends one of that.';
  }
  if (key === 'C-Z' && !waiting.canStop) {
    return 'Nothing was sent: a command that starts programs in the background with & cannot be stopped; C-c interrupts it.';
  }
  return command.split('\n').some((line) => Buffer.byteLength(line) > MAX_LINE_BYTES)
    ? `Nothing was sent: a terminal takes lines of at most ${MAX_LINE_BYTES} bytes. Write the text to a file.`
    : null;
}

function refused(command: string, reason: string, workingDir: string): TerminalObservation {
  return toObservation(command, 0, {
    output: `[${reason}]`,
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
    is_error: result.exitCode !== 0 && result.ending !== 'waiting',
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
  if (ending === 'waiting') {
    return '[The command goes on, and waits for input. Send a text, C-c, C-d or C-z with is_input; an empty text waits longer.]';
  }
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
