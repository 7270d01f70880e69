import { Injectable } from '@nestjs/common';
import { SecretCipher } from '../../../common/crypto/secret-cipher.js';
import { AppConfig } from '../../../config/app-config.js';
import type { SandboxSpec } from '../../sandbox-specs/sandbox-spec.js';
import { SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import { SandboxBackendError, type SandboxLaunch } from '../backends/sandbox-backend.js';
import { SandboxCallback } from '../sandbox-callback.js';
import { SandboxUrls } from '../sandbox-urls.js';
import type { Sandbox } from '../sandbox.entity.js';
import { sessionKeyBinding } from '../session-key.js';
import type { SandboxOverrides } from '../user-overrides.js';

/** What a container gets whose specification says nothing. */
export const CONTAINER_DEFAULTS = { cpu: 2, memoryMb: 4096 } as const;

/** The part of a launch that follows from specification and wishes. */
type LaunchPlan = Pick<
  SandboxLaunch,
  'program' | 'env' | 'workingDir' | 'cpu' | 'memoryMb' | 'runtime' | 'network' | 'ports'
>;

/**
 * What a sandbox is started with.
 *
 * @param wishes what the user's settings ask for
 * @returns the plan, and one sentence for each wish that cannot be met
 */
export function toLaunch(
  spec: SandboxSpec,
  wishes: SandboxOverrides | null,
  backend: 'process' | 'docker',
): { launch: LaunchPlan; notes: string[] } {
  const plan: LaunchPlan = {
    program: spec.program,
    env: spec.env,
    workingDir: spec.workingDir,
    cpu: spec.cpu,
    memoryMb: spec.memoryMb,
    runtime: spec.runtime,
    network: spec.network,
    ports: spec.ports,
  };
  const notes: string[] = [];
  if (wishes === null) {
    return { launch: plan, notes };
  }
  const factor = wishes.resourceFactor ?? 1;
  if (factor !== 1) {
    if (backend === 'docker') {
      plan.cpu = (spec.cpu ?? CONTAINER_DEFAULTS.cpu) * factor;
      plan.memoryMb = Math.round((spec.memoryMb ?? CONTAINER_DEFAULTS.memoryMb) * factor);
    } else {
      notes.push(
        `remote_runtime_resource_factor ${factor} has no effect: process sandboxes share the machine without limits of their own.`,
      );
    }
  }
  if (wishes.unusedImage !== undefined) {
    notes.push(
      `sandbox_base_container_image ${wishes.unusedImage} has no effect: sandbox_runtime_container_image is set.`,
    );
  }
  if (wishes.image !== null) {
    if (backend === 'process') {
      notes.push(
        `The container image ${wishes.image} of the settings has no effect: process sandboxes run no images.`,
      );
    } else if (spec.program.kind === 'command') {
      notes.push(
        `The container image ${wishes.image} of the settings has no effect: the specification ${spec.id} runs a command.`,
      );
    } else {
      plan.program = { ...spec.program, image: wishes.image };
    }
  }
  return { launch: plan, notes };
}

/** Everything about one start of a sandbox. */
interface PlannedLaunch {
  launch: SandboxLaunch;
  /** What of the user's settings has no effect. */
  notes: string[];
  startTimeoutSeconds: number;
}

/** Says what a sandbox is started with, anew at each start: specifications, settings and addresses may have changed. */
@Injectable()
export class LaunchPlanner {
  constructor(
    private readonly specs: SandboxSpecs,
    private readonly cipher: SecretCipher,
    private readonly config: AppConfig,
    private readonly callback: SandboxCallback,
    private readonly addresses: SandboxUrls,
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
    const { launch, notes } = toLaunch(spec, sandbox.overrides, backend);
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

/** What of the operator's specifications processes cannot have, in one line for the log; null when that is nothing. */
export function specsProblem(specs: readonly SandboxSpec[], backend: 'process' | 'docker'): string | null {
  const unmet = backend === 'process' ? specs.filter(asksForMore) : [];
  return unmet.length === 0
    ? null
    : `process sandboxes have no limits, runtime or network of their own: what SANDBOX_SPECS_FILE says of these has no effect for ${unmet.map(({ id }) => id).join(', ')}`;
}

/** Images are refused anyway, by name, when one is started. */
function asksForMore({ program, cpu, memoryMb, runtime, network }: SandboxSpec): boolean {
  return program.kind !== 'image' && [cpu, memoryMb, runtime, network].some((wish) => wish !== null);
}
