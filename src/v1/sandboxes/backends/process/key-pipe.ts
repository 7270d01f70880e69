import { execFile } from 'node:child_process';
import { constants } from 'node:fs';
import { open, rm } from 'node:fs/promises';
import { promisify } from 'node:util';
import { errorCode } from '@slipway/common/errors/error-message.js';
import { SandboxBackendError } from '../sandbox-backend.js';

const run = promisify(execFile);
const MKFIFO_TIMEOUT_MS = 10_000;

export function sessionKeyLine(sessionKey: string): string {
  return `${JSON.stringify({ session_api_key: sessionKey })}\n`;
}

/** Makes the pipe for a waiting program's key. The program opens both ends, so that its input does not end. */
export async function createKeyPipe(file: string): Promise<void> {
  await rm(file, { force: true });
  try {
    await run('mkfifo', ['-m', '600', file], { timeout: MKFIFO_TIMEOUT_MS, env: { PATH: '/usr/bin:/bin' } });
  } catch (error) {
    throw new SandboxBackendError('The sandbox cannot be started: its key pipe cannot be made.', {
      cause: error,
    });
  }
}

/** Gives a waiting program its session key. After a crash it may be written twice: the program reads one line. */
export async function writeSessionKey(file: string, sessionKey: string): Promise<void> {
  let pipe;
  try {
    pipe = await open(file, constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOFOLLOW);
  } catch (error) {
    // No pipe: it was started with its key. No reader: it has ended, which its exit shows.
    if (['ENOENT', 'ENXIO'].includes(errorCode(error) ?? '')) {
      return;
    }
    throw error;
  }
  try {
    await pipe.write(sessionKeyLine(sessionKey));
  } finally {
    await pipe.close();
  }
  await rm(file, { force: true });
}
