import type Docker from 'dockerode';
import { jsonText } from '@slipway/common/json-access.js';
import { INSTANCE_LABEL, SANDBOX_LABEL } from '../container-layout.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { CREATED_LABEL, sandboxName } from './container.js';
import { callEngine, nullOnStatus } from './engine.js';

/** One volume per sandbox holds its files, from the first start until the removal. */
export class SandboxVolumes {
  constructor(
    private readonly docker: Docker,
    private readonly instanceId: string,
  ) {}

  async create(id: string): Promise<number> {
    const name = sandboxName(id);
    await callEngine('the volume of the sandbox cannot be created', () =>
      this.docker.createVolume({
        Name: name,
        // The engine ignores the labels when the volume exists.
        Labels: {
          [INSTANCE_LABEL]: this.instanceId,
          [SANDBOX_LABEL]: id,
          [CREATED_LABEL]: String(Date.now()),
        },
      }),
    );
    const createdAt = await this.createdAt(id);
    if (createdAt === null) {
      throw new SandboxBackendError(`the volume ${name} belongs to another installation`);
    }
    return createdAt;
  }

  /** Epoch milliseconds; null when there is no such volume of ours. */
  async createdAt(id: string): Promise<number | null> {
    const volume = await callEngine('the volume of the sandbox cannot be inspected', () =>
      nullOnStatus([404], this.docker.getVolume(sandboxName(id)).inspect()),
    );
    if (volume === null || volume.Labels?.[INSTANCE_LABEL] !== this.instanceId) {
      return null;
    }
    // The engine's own date changes with the folder.
    return (
      Number(volume.Labels[CREATED_LABEL]) || Date.parse(jsonText(volume, 'CreatedAt') ?? '') || Date.now()
    );
  }

  async remove(id: string): Promise<void> {
    if ((await this.createdAt(id)) === null) {
      return;
    }
    await callEngine('the files of the sandbox cannot be removed', () =>
      nullOnStatus([404], this.docker.getVolume(sandboxName(id)).remove()),
    );
  }

  async list(): Promise<string[]> {
    const { Volumes } = await callEngine('the volumes of the sandboxes cannot be listed', () =>
      this.docker.listVolumes({ filters: { label: [`${INSTANCE_LABEL}=${this.instanceId}`] } }),
    );
    return (Volumes ?? []).flatMap(({ Labels }) => Labels[SANDBOX_LABEL] ?? []);
  }
}
