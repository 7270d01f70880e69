import { Injectable } from '@nestjs/common';
import { DomainError } from '../../common/errors/domain-error.js';
import { type AgentSecretDescription, AgentSecretsReader } from '../../settings/agent-secrets.reader.js';
import type { SandboxKeyHolder } from '../sandboxes/sandbox-keys.js';

/** Hands the secrets of a sandbox's owner to what runs in the sandbox. */
@Injectable()
export class SandboxSecretsService {
  constructor(private readonly secrets: AgentSecretsReader) {}

  /**
   * Names and descriptions, by name.
   *
   * @throws DomainError unauthorized unless the sandbox runs, forbidden when it is another one
   */
  async list(holder: SandboxKeyHolder, sandboxId: string): Promise<AgentSecretDescription[]> {
    requireOwnRunning(holder, sandboxId);
    return await this.secrets.describe(holder.userId);
  }

  /**
   * One value.
   *
   * @throws DomainError as {@link list}; not_found for an unknown name
   */
  async find(holder: SandboxKeyHolder, sandboxId: string, name: string): Promise<string> {
    requireOwnRunning(holder, sandboxId);
    const value = await this.secrets.find(holder.userId, name);
    if (value === null) {
      throw new DomainError('not_found', 'not_found', `There is no secret named ${name}.`);
    }
    return value;
  }
}

function requireOwnRunning(holder: SandboxKeyHolder, sandboxId: string): void {
  if (!holder.running) {
    throw new DomainError('unauthorized', 'unauthorized', 'Unauthorized');
  }
  if (holder.sandboxId !== sandboxId) {
    throw new DomainError('forbidden', 'forbidden', 'The key belongs to another sandbox.');
  }
}
