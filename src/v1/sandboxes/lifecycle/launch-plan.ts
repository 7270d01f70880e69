import { readFileSync } from 'node:fs';
import { rootCertificates } from 'node:tls';
import { Injectable, Logger } from '@nestjs/common';
import { errorMessage } from '@slipway/common/errors/error-message.js';
import { SecretCipher } from '@slipway/common/secret-cipher.js';
import { AppConfig } from '../../../config/app-config.js';
import { type SandboxSpec, SandboxSpecs } from '../../sandbox-specs/sandbox-specs.js';
import {
  SandboxBackendError,
  type SandboxBackendKind,
  type LaunchTemplate,
  type SandboxLaunch,
} from '@slipway/sandboxes/sandbox-backend.js';
import { SANDBOX_BACKENDS } from '../backends/sandbox-backends.js';
import { SandboxCallback } from '../sandbox-callback.js';
import { SandboxUrls } from '../sandbox-urls.js';
import type { Sandbox, SandboxOverrides } from '../sandbox.entity.js';
import { sessionKeyBinding } from '../session-key.js';
import { madeByOtherBackend } from './exit-diagnosis.js';

export const SANDBOX_DEFAULTS = { cpu: 2, memoryMb: 4096 } as const;

/** A stock agent server encrypts its files with this. */
const STORAGE_KEY = 'OH_SECRET_KEY';
/** Each in a variable, which holds 128 KB. Our agent server trusts them, and has the programs of tools trust them. */
const AUTHORITY = 'SLIPWAY_AUTHORITY_';

interface PlannedLaunch {
  spec: SandboxSpec;
  launch: SandboxLaunch;
  notes: string[];
}

/** Plans each start of a sandbox anew, since specifications and addresses may have changed. */
@Injectable()
export class LaunchPlanner {
  private readonly logger = new Logger(LaunchPlanner.name);

  constructor(
    private readonly specs: SandboxSpecs,
    private readonly cipher: SecretCipher,
    private readonly config: AppConfig,
    private readonly callback: SandboxCallback,
    private readonly urls: SandboxUrls,
  ) {}

  /** @throws SandboxBackendError when its specification, or its backend, is not configured any more */
  plan(sandbox: Sandbox): PlannedLaunch {
    const { backend } = this.config.sandboxes;
    if (sandbox.backend !== backend) {
      throw new SandboxBackendError(madeByOtherBackend(sandbox.backend, backend));
    }
    const spec = this.specs.find(sandbox.specId);
    if (!spec) {
      throw new SandboxBackendError(`Its specification ${sandbox.specId} is not configured any more.`);
    }
    const { template, notes } = this.template(spec, sandbox.overrides);
    return {
      spec,
      launch: {
        ...template,
        env: { ...this.storageVariables(template, sandbox.id), ...template.env },
        id: sandbox.id,
        sessionKey: this.cipher.decrypt(sandbox.sessionKey, sessionKeyBinding(sandbox.id)),
      },
      notes,
    };
  }

  /** A stock agent server would encrypt its files with the session key, which each resume changes. */
  private storageVariables({ program }: LaunchTemplate, id: string): Record<string, string> {
    return program.kind === 'native' ? {} : { [STORAGE_KEY]: this.cipher.derive(`sandboxes.storage:${id}`) };
  }

  template(
    spec: SandboxSpec,
    overrides: SandboxOverrides | null,
  ): { template: LaunchTemplate; notes: string[] } {
    const { launch, notes } = toLaunch(spec, overrides, this.config.sandboxes.backend);
    // Ports without addresses for clients are not opened.
    const ports = this.urls.exposesPorts ? launch.ports : {};
    const env = { ...launch.env, ...(launch.program.kind === 'native' && this.authorityVariables()) };
    return { template: { ...launch, env, ports, callbackUrl: this.callback.webhooksUrl }, notes };
  }

  /** Reads the file anew, since it may have been renewed. As in Node.js, one that cannot be read stops nothing. */
  private authorityVariables(): Record<string, string> {
    const { backend, environment } = this.config.sandboxes;
    const { NODE_EXTRA_CA_CERTS: file, SSL_CERT_FILE: bundle } = environment;
    // Process sandboxes are shown both files.
    if (file === undefined || (backend === 'process' && bundle !== undefined)) {
      return {};
    }
    try {
      const authorities = privateAuthorities(readFileSync(file, 'utf8'));
      return Object.fromEntries(authorities.map((pem, index) => [`${AUTHORITY}${index}`, pem]));
    } catch (error) {
      this.logger.warn('failed to read certificate authorities', { file, error: errorMessage(error) });
      return {};
    }
  }
}

const CERTIFICATE = /-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g;

/**
 * Returns the certificates of a bundle that are not well known: the file may be a system's, and its text would be in every
 * pod.
 */
export function privateAuthorities(bundle: string): string[] {
  const known = new Set(rootCertificates.map(withoutSpace));
  const certificates = bundle.replaceAll('\r', '').match(CERTIFICATE) ?? [];
  return certificates.filter((pem) => !known.has(withoutSpace(pem)));
}

function withoutSpace(pem: string): string {
  return pem.replaceAll(/\s/g, '');
}

export interface SandboxSettings {
  remote_runtime_resource_factor: number | null;
  sandbox_base_container_image: string | null;
  sandbox_runtime_container_image: string | null;
  /** What each says of the network: both hold. */
  egress: Record<'organization' | 'settings', object | null>;
}

export function toOverrides(settings: Omit<SandboxSettings, 'egress'> | null): SandboxOverrides | null {
  if (settings === null) {
    return null;
  }
  const {
    remote_runtime_resource_factor: resourceFactor,
    sandbox_base_container_image: base,
    sandbox_runtime_container_image: runtime,
  } = settings;
  const overrides = {
    resourceFactor,
    // An image that is ready to run wins over one that would have to be prepared first.
    image: runtime || base || null,
    ...(runtime && base && runtime !== base && { unusedImage: base }),
  };
  return overrides.resourceFactor === null && overrides.image === null ? null : overrides;
}

type LaunchPlan = Omit<LaunchTemplate, 'callbackUrl'>;

/** Applies a user's overrides to a specification, with a sentence for each that has no effect. */
export function toLaunch(
  spec: SandboxSpec,
  overrides: SandboxOverrides | null,
  backend: SandboxBackendKind,
): { launch: LaunchPlan; notes: string[] } {
  const { program, env, workingDir, cpu, memoryMb, runtime, network, pod, ports } = spec;
  const plan: LaunchPlan = { program, env, workingDir, cpu, memoryMb, runtime, network, pod, ports };
  const notes: string[] = [];
  if (overrides === null) {
    return { launch: plan, notes };
  }
  const factor = overrides.resourceFactor ?? 1;
  if (factor !== 1) {
    plan.cpu = (cpu ?? SANDBOX_DEFAULTS.cpu) * factor;
    plan.memoryMb = Math.round((memoryMb ?? SANDBOX_DEFAULTS.memoryMb) * factor);
  }
  if (overrides.unusedImage !== undefined) {
    notes.push(
      `sandbox_base_container_image ${overrides.unusedImage} has no effect: sandbox_runtime_container_image is set.`,
    );
  }
  if (overrides.image !== null) {
    if (!SANDBOX_BACKENDS[backend].runsContainers) {
      notes.push(
        `The container image ${overrides.image} of the settings has no effect: ${backend} sandboxes run no images.`,
      );
    } else if (program.kind === 'command') {
      notes.push(
        `The container image ${overrides.image} of the settings has no effect: the specification ${spec.id} runs a command.`,
      );
    } else {
      plan.program = { ...program, image: overrides.image };
    }
  }
  return { launch: plan, notes };
}

/** Parts of the specifications that have no effect without containers, in one line for the log; null if none. */
export function specsProblem(specs: readonly SandboxSpec[], backend: SandboxBackendKind): string | null {
  const unmet = SANDBOX_BACKENDS[backend].runsContainers ? [] : specs.filter(asksForContainer);
  return unmet.length === 0
    ? null
    : `${backend} sandboxes run in no container: runtime, network and pod of SANDBOX_SPECS_FILE have no effect for ${unmet.map(({ id }) => id).join(', ')}`;
}

/** Starting a specification with an image fails anyway, and names the image. */
function asksForContainer({ program, runtime, network, pod }: SandboxSpec): boolean {
  return program.kind !== 'image' && [runtime, network, pod].some((setting) => setting !== null);
}
