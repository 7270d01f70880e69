import { withoutSecret } from '@slipway/common/secret-mask.js';
import { textHead, textTail } from '@slipway/common/well-formed-text.js';
import type { SandboxExit, SandboxFacts } from '@slipway/sandboxes/sandbox-backend.js';
import type { Sandbox } from '../sandbox.entity.js';

export const FILES_GONE =
  'Its files are gone, so it cannot be started again. Delete it; its conversations stay readable.';

const MAX_LOG_CHARACTERS = 4_000;
const MAX_CAUSE_CHARACTERS = 500;
const STARTED_AGAIN = 'The sandbox had failed, and was started again for ';

/** @param what the caller wants to do with it, such as `a message` */
export function startedAgain(what: string, failure: string | null): string {
  return `${STARTED_AGAIN}${what}. Before that: ${briefCause(failure)}`;
}

export function isStartedAgain(detail: string | null): detail is string {
  return detail?.startsWith(STARTED_AGAIN) === true;
}

/** Returns the first line of the cause, without the lines of its log. */
export function briefCause(failure: string | null): string {
  return textHead(failure?.split('\n', 1)[0] || 'no cause is known', MAX_CAUSE_CHARACTERS);
}

interface FailureFacts {
  facts: Pick<SandboxFacts, 'state' | 'exit'>;
  log: string;
  /** Masked in the log, in case the program printed it. */
  sessionKey: string | null;
}

/** The operator has changed SANDBOX_BACKEND since the sandbox was made. */
export function madeByOtherBackend(made: Sandbox['backend'], configured: Sandbox['backend']): string {
  return `It was made by the ${made} backend, and the service runs with SANDBOX_BACKEND=${configured} now.`;
}

export function failedWhileStarting(failure: FailureFacts, tried: string | null): string {
  const cause = failure.facts.exit?.cause;
  if (cause !== undefined) {
    return cause;
  }
  const where = tried === null ? 'before it listened' : `while ${tried}/alive was asked`;
  return withLog(
    failure.facts.state === 'missing'
      ? `It vanished ${where}: something else removed it.`
      : `Its program ended ${where} (${exitText(failure.facts.exit)}).`,
    failure,
  );
}

export function startTimedOut(
  failure: Omit<FailureFacts, 'facts'>,
  tried: string | null,
  seconds: number,
): string {
  const where =
    tried === null ? 'It did not say where it listens' : `Its agent server did not answer at ${tried}/alive`;
  return withLog(`${where} within ${seconds} s.`, failure);
}

/** It was RUNNING, and exited without a request to stop. */
export function endedByItself(failure: FailureFacts): string {
  const cause = failure.facts.exit?.cause;
  if (cause !== undefined) {
    return cause;
  }
  return withLog(
    failure.facts.state === 'missing'
      ? 'It vanished while it ran: something else removed it.'
      : `Its program ended by itself (${exitText(failure.facts.exit)}). Resuming starts it again.`,
    failure,
  );
}

function exitText(exit: SandboxExit | null): string {
  if (exit === null) {
    return 'exit code unknown';
  }
  if (exit.outOfMemory) {
    return `out of memory${exit.code === null ? '' : `, exit code ${exit.code}`}`;
  }
  if (exit.code !== null) {
    return `exit code ${exit.code}`;
  }
  return exit.signal === null ? 'exit code unknown' : `signal ${exit.signal}`;
}

function withLog(sentence: string, { log, sessionKey }: Pick<FailureFacts, 'log' | 'sessionKey'>): string {
  // Programs print anything; PostgreSQL's text takes no NUL.
  const text = withoutSecret(log, sessionKey).replaceAll('\0', '').trim();
  return text === '' ? sentence : `${sentence}\nLast lines:\n${textTail(text, MAX_LOG_CHARACTERS)}`;
}
