import { z } from 'zod';
import type { TerminalObservation } from '@slipway/agent-protocol/events.js';
import type { ShellResult, ShellSession } from './shell-session.js';
import { builtInTool, type Tool } from './tool.js';

const DEFAULT_TIMEOUT_SECONDS = 300;
const MAX_TIMEOUT_SECONDS = 3_600;

const schema = z.object({
  command: z.string().describe('The command for bash. Join several commands with && or ;'),
  timeout: z
    .number()
    .positive()
    .max(MAX_TIMEOUT_SECONDS)
    .nullish()
    .describe(`Seconds after which the command is ended; ${DEFAULT_TIMEOUT_SECONDS} by default.`),
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
      '(`server > server.log 2>&1 &`). A command that takes longer than its timeout is ended together with the shell. ' +
      'Of a long output you see the beginning and the end.',
    needsConfirmation: true,
    schema,
    toAction: ({ command, timeout, reset }) => ({
      kind: 'TerminalAction',
      command,
      is_input: false,
      timeout: timeout ?? null,
      reset,
    }),
    run: async ({ command, timeout, reset }, { environment, signal }) => {
      const seconds = timeout ?? DEFAULT_TIMEOUT_SECONDS;
      if (reset) {
        await session.reset();
      }
      const result = await session.run({ command, timeoutMs: seconds * 1000, environment, signal });
      return toObservation(command, seconds, result);
    },
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
  if (ending === 'timeout') {
    return `[The command was ended after ${seconds} s, with everything that the shell had started. ${fresh}]`;
  }
  if (ending === 'aborted') {
    return `[The command was interrupted, with everything that the shell had started. ${fresh}]`;
  }
  return shellEnded
    ? `[The shell ended with exit code ${exitCode}. Background jobs ended with it. ${fresh}]`
    : `[Exit code ${exitCode}, folder ${workingDir}]`;
}
