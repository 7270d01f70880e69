import { DomainError, type ErrorKind } from '../../common/errors/domain-error.js';
import type { ErrorCode } from '../../common/errors/error-code.js';
import type { AgentServerError } from '../agent-servers/agent-server.error.js';

/** Refusals that are about what was asked, not about the agent server. */
const KINDS: Readonly<Record<number, [ErrorKind, ErrorCode]>> = {
  400: ['conflict', 'conflict'],
  403: ['forbidden', 'forbidden'],
  409: ['conflict', 'conflict'],
  422: ['conflict', 'conflict'],
};

/**
 * An agent server's failure as a problem: what it refuses because of the conversation's state keeps its own words,
 * everything else is the agent server's fault.
 */
export function agentServerProblem(error: AgentServerError): DomainError {
  const known = error.status === null ? undefined : KINDS[error.status];
  if (known) {
    return new DomainError(...known, error.detail, { cause: error });
  }
  return new DomainError(
    'bad_gateway',
    'upstream_error',
    error.status === null
      ? 'The agent server of the sandbox did not answer; try again.'
      : `The agent server of the sandbox refused the request (${error.status}): ${error.detail}`,
    { cause: error },
  );
}
