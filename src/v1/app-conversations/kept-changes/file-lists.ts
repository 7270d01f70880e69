import { Injectable } from '@nestjs/common';
import { cleanText } from '@slipway/common/well-formed-text.js';
import { AgentServerCommands } from '@slipway/agent-client/agent-server.commands.js';
import type { AgentServerTarget } from '@slipway/agent-client/agent-server.connections.js';
import { shellQuote } from '../start/repository-checkout.js';

const MAX_FILES = 2_000;
/** Limits the work in an endless folder. */
const MAX_FOUND = 50_000;
/** Bytes as JSON. */
const MAX_BYTES = 1_000_000;
const TIMEOUT_SECONDS = 20;
/** Installed packages, caches and build output. */
const LEFT_OUT = [
  '.git',
  'node_modules',
  '.venv',
  'venv',
  '__pycache__',
  'dist',
  'build',
  '.next',
  '.cache',
  '.pytest_cache',
  '.mypy_cache',
  '.turbo',
  '.parcel-cache',
  'target',
];

/** Lists files in sandboxes, as their tools see them. */
@Injectable()
export class FileLists {
  constructor(private readonly commands: AgentServerCommands) {}

  /**
   * Up to 2,000 sorted relative paths below an absolute folder; none if it does not exist.
   * @throws AgentServerError, or the signal's reason
   */
  async below(
    target: AgentServerTarget,
    folder: string,
    signal = AbortSignal.timeout((TIMEOUT_SECONDS + 1) * 1000),
  ): Promise<string[]> {
    const { stdout } = await this.commands.run(target, {
      command: filesCommand(folder),
      cwd: null,
      timeoutSeconds: TIMEOUT_SECONDS,
      keepCharacters: 2 * MAX_BYTES,
      signal,
    });
    return toPaths(stdout);
  }
}

/** Runs as the sandbox's tools do, and prints whole lines, at most `MAX_BYTES` bytes. */
export function filesCommand(folder: string): string {
  const names = LEFT_OUT.map((name) => `-name ${name}`).join(' -o ');
  return [
    `cd -- ${shellQuote(folder)} 2>/dev/null || exit 0`,
    `find . -type d \\( ${names} \\) -prune -o -type f -print 2>/dev/null | head -n ${MAX_FOUND} | LC_ALL=C sort | head -n ${MAX_FILES} | head -c ${MAX_BYTES}`,
  ].join('; ');
}

/** Whatever a program has printed in the place of the command's output: relative paths within the bounds. */
export function toPaths(stdout: string): string[] {
  const room = { bytes: MAX_BYTES };
  return stdout
    .split('\n', MAX_FILES)
    .filter((line) => line.startsWith('./') && !/^\.\/(\/|$)|(^|\/)\.\.(\/|$)/.test(line))
    .map((line) => cleanText(line.slice(2)))
    .filter((name) => {
      room.bytes -= Buffer.byteLength(JSON.stringify(name)) + 1;
      return room.bytes >= 0;
    });
}
