import type Docker from 'dockerode';
import { jsonText } from '../../../../common/json-access.js';
import { SandboxBackendError } from '../sandbox-backend.js';
import { withDeadline, engineFailure, nullOnStatus } from './engine.js';
import { CREATED_LABEL, INSTANCE_LABEL, SANDBOX_LABEL, sandboxName } from './container.js';

/** The files of sandboxes: a volume each, there from the first start to the removal. */
export class SandboxVolumes {
  constructor(
    private readonly docker: Docker,
    private readonly instanceId: string,
  ) {}

  /**
   * Get-or-create.
   *
   * @returns when it was made, epoch milliseconds
   */
  async create(id: string): Promise<number> {
    const name = sandboxName(id);
    try {
      await withDeadline(
        this.docker.createVolume({
          Name: name,
          // Of one that is there already the labels stay as they are.
          Labels: {
            [INSTANCE_LABEL]: this.instanceId,
            [SANDBOX_LABEL]: id,
            [CREATED_LABEL]: String(Date.now()),
          },
        }),
      );
    } catch (error) {
      throw engineFailure('the volume of the sandbox cannot be made', error);
    }
    const createdAt = await this.createdAt(id);
    if (createdAt === null) {
      throw new SandboxBackendError(`the volume ${name} belongs to another installation`);
    }
    return createdAt;
  }

  /** Epoch milliseconds; null when there is none of ours. */
  async createdAt(id: string): Promise<number | null> {
    try {
      const volume = await withDeadline(
        nullOnStatus([404], this.docker.getVolume(sandboxName(id)).inspect()),
      );
      if (volume === null || volume.Labels?.[INSTANCE_LABEL] !== this.instanceId) {
        return null;
      }
      // What the engine itself says changes with the folder.
      return (
        Number(volume.Labels[CREATED_LABEL]) || Date.parse(jsonText(volume, 'CreatedAt') ?? '') || Date.now()
      );
    } catch (error) {
      throw engineFailure('the volume of the sandbox cannot be looked at', error);
    }
  }

  /** Nothing happens when there is none of ours. */
  async remove(id: string): Promise<void> {
    if ((await this.createdAt(id)) === null) {
      return;
    }
    try {
      await withDeadline(nullOnStatus([404], this.docker.getVolume(sandboxName(id)).remove()));
    } catch (error) {
      throw engineFailure('the files of the sandbox cannot be removed', error);
    }
  }

  /** Ids of the sandboxes that have one. */
  async list(): Promise<string[]> {
    try {
      const { Volumes } = await withDeadline(
        this.docker.listVolumes({
          filters: { label: [`${INSTANCE_LABEL}=${this.instanceId}`] },
        }),
      );
      return (Volumes ?? []).flatMap(({ Labels }) => Labels[SANDBOX_LABEL] ?? []);
    } catch (error) {
      throw engineFailure('the volumes of the sandboxes cannot be listed', error);
    }
  }
}
