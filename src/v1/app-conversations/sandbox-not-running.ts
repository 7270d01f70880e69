import { DomainError } from '../../common/errors/domain-error.js';
import type { SandboxStatus } from '../sandboxes/sandbox-status.js';

/** Why nothing can be done in a sandbox that does not run, and what to do about it. */
export function sandboxNotRunning(status: Exclude<SandboxStatus, 'RUNNING'>, sandboxId: string): DomainError {
  const resume = `POST /api/v1/sandboxes/${sandboxId}/resume`;
  switch (status) {
    case 'PAUSED':
      return new DomainError(
        'conflict',
        'sandbox_not_running',
        `The sandbox is PAUSED; resume it first with ${resume}.`,
      );
    case 'STARTING':
      return new DomainError(
        'conflict',
        'sandbox_not_running',
        'The sandbox is STARTING; try again once it is RUNNING.',
      );
    case 'ERROR':
      return new DomainError(
        'unavailable',
        'sandbox_not_running',
        `The sandbox is in ERROR (its status_detail says why); start it again with ${resume}.`,
      );
    case 'MISSING':
      return new DomainError(
        'gone',
        'sandbox_not_running',
        'The sandbox is MISSING: the conversation can be read, but not continued.',
      );
  }
}
