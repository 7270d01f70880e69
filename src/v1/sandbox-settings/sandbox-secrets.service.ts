import { Injectable } from '@nestjs/common';
import { AuditRepository } from '../../audit/audit.repository.js';
import { DomainError } from '../../common/errors/domain-error.js';
import {
  type AgentSecretDescription,
  AgentSecretsReader,
  type SecretFilter,
} from '../../settings/secrets/agent-secrets.reader.js';
import { unknownSecret } from '../../settings/secrets/custom-secret.repository.js';
import { OutsideCredentials } from '../app-conversations/outside-credentials/outside-credentials.js';
import { visibleSecrets } from '../app-conversations/start-task.entity.js';
import { StartTaskRepository } from '../app-conversations/start-task.repository.js';
import { noSandboxKey, type SandboxKeyHolder } from '../sandboxes/sandbox-key.guard.js';

/** Reads a user's secrets for programs in the user's sandboxes. */
@Injectable()
export class SandboxSecretsService {
  constructor(
    private readonly secrets: AgentSecretsReader,
    private readonly starts: StartTaskRepository,
    private readonly outside: OutsideCredentials,
    private readonly audit: AuditRepository,
  ) {}

  /**
   * The secrets of a sandbox's user without their values, by name; only those in `secret_names` if every conversation
   * of the sandbox was started with such a list.
   * @throws DomainError unauthorized unless the sandbox runs, forbidden when the key is another sandbox's
   */
  async list(holder: SandboxKeyHolder, sandboxId: string): Promise<AgentSecretDescription[]> {
    requireOwnRunningSandbox(holder, sandboxId);
    return await this.secrets.describe(holder.userId, await this.visible(holder));
  }

  /**
   * A placeholder where the value stays outside of sandboxes.
   * @throws DomainError as `list` does; not_found for an unknown name
   */
  async find(holder: SandboxKeyHolder, sandboxId: string, name: string): Promise<string> {
    requireOwnRunningSandbox(holder, sandboxId);
    const shown = this.outside.shownSecrets(holder);
    const value = await this.secrets.find(holder.userId, name, await this.visible(holder), shown);
    if (value === null) {
      throw unknownSecret(name);
    }
    // The entry comes first: no secret is shown in clear without one.
    await this.starts.transaction((manager) =>
      this.audit.append(manager, {
        action: 'secret.expose',
        resourceId: name,
        ownerId: holder.userId,
        details: { ...holder.cause },
      }),
    );
    return await (await this.outside.concealerForPrograms(holder)).text(value);
  }

  private async visible({ userId, sandboxId }: SandboxKeyHolder): Promise<SecretFilter> {
    return visibleSecrets(await this.starts.limitsInSandbox(userId, sandboxId));
  }
}

function requireOwnRunningSandbox(holder: SandboxKeyHolder, sandboxId: string): void {
  if (!holder.running) {
    throw noSandboxKey();
  }
  if (holder.sandboxId !== sandboxId) {
    throw new DomainError('forbidden', 'The key belongs to another sandbox.');
  }
}
