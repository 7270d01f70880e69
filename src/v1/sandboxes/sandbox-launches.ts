import { Injectable } from '@nestjs/common';
import { SecretCipher } from '../../common/crypto/secret-cipher.js';
import { AppConfig } from '../../config/app-config.js';
import { SandboxSpecs } from '../sandbox-specs/sandbox-specs.js';
import { SandboxBackendError } from './backends/sandbox-backend.error.js';
import type { SandboxLaunch } from './backends/sandbox-backend.js';
import { SandboxAddresses } from './sandbox-addresses.js';
import { SandboxCallback } from './sandbox-callback.js';
import { sessionKeyBinding } from './sandbox-session-key.js';
import type { Sandbox } from './sandbox.entity.js';
import { toLaunch } from './to-launch.js';

/** Everything about one start of a sandbox. */
export interface PlannedLaunch {
  launch: SandboxLaunch;
  /** What of the user's settings has no effect. */
  notes: string[];
  startTimeoutSeconds: number;
}

/** Says what a sandbox is started with, anew at each start: specifications, settings and addresses may have changed. */
@Injectable()
export class SandboxLaunches {
  constructor(
    private readonly specs: SandboxSpecs,
    private readonly cipher: SecretCipher,
    private readonly config: AppConfig,
    private readonly callback: SandboxCallback,
    private readonly addresses: SandboxAddresses,
  ) {}

  /** @throws SandboxBackendError when the specification, or the backend, is not what there is any more */
  plan(sandbox: Sandbox): PlannedLaunch {
    const { backend } = this.config.sandboxes;
    if (sandbox.backend !== backend) {
      throw new SandboxBackendError(
        `It was made by the ${sandbox.backend} backend, and the service runs with SANDBOX_BACKEND=${backend} now.`,
      );
    }
    const spec = this.specs.find(sandbox.specId);
    if (!spec) {
      throw new SandboxBackendError(`Its specification ${sandbox.specId} is not configured any more.`);
    }
    const { launch, notes } = toLaunch(spec, sandbox.wishes, backend);
    return {
      launch: {
        ...launch,
        // What has no address for anybody is not opened either.
        ports: this.addresses.exposesPorts ? launch.ports : {},
        id: sandbox.id,
        sessionKey: this.cipher.decrypt(sandbox.sessionKey, sessionKeyBinding(sandbox.id)),
        callbackUrl: this.callback.webhooksUrl,
      },
      notes,
      startTimeoutSeconds: spec.startTimeoutSeconds,
    };
  }
}
