import type { SandboxLaunch } from './backends/sandbox-backend.js';
import type { SandboxSpec } from '../sandbox-specs/sandbox-spec.js';
import type { SandboxWishes } from './sandbox.entity.js';

/** What a container gets whose specification says nothing. */
export const CONTAINER_DEFAULTS = { cpu: 2, memoryMb: 4096 } as const;

/** The part of a launch that follows from specification and wishes. */
export type LaunchPlan = Pick<
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
  wishes: SandboxWishes | null,
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
