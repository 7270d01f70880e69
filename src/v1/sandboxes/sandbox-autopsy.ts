import { Injectable } from '@nestjs/common';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { SandboxBackend } from './backends/sandbox-backend.js';
import { endedByItself } from './sandbox-failure.js';
import { sessionKeyBinding } from './sandbox-session-key.js';
import type { Sandbox } from './sandbox.entity.js';

/** Finds out why a sandbox that should run does not. */
@Injectable()
export class SandboxAutopsy {
  constructor(
    private readonly backend: SandboxBackend,
    private readonly cipher: SecretCipher,
  ) {}

  /** The cause in words for people; null when the sandbox runs after all. */
  async causeOfEnd(sandbox: Sandbox): Promise<string | null> {
    if (sandbox.backend !== this.backend.kind) {
      return `It was made by the ${sandbox.backend} backend, and the service runs with SANDBOX_BACKEND=${this.backend.kind} now.`;
    }
    const facts = await this.backend.inspect(sandbox.id);
    if (facts.state === 'running') {
      return null;
    }
    return endedByItself({
      facts,
      log: await this.backend.logTail(sandbox.id),
      sessionKey: this.cipher.decrypt(sandbox.sessionKey, sessionKeyBinding(sandbox.id)),
    });
  }
}
