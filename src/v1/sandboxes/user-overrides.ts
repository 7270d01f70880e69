import { Injectable } from '@nestjs/common';
import { SettingsRepository } from '../../settings/settings.repository.js';

/** What a user's settings ask of a sandbox; kept with the sandbox, so that every resume gets the same. */
export interface SandboxOverrides {
  /** `remote_runtime_resource_factor`: multiplies the processors and the memory of the specification. */
  resourceFactor: number | null;
  /** `sandbox_runtime_container_image`, or else `sandbox_base_container_image`. */
  image: string | null;
  /** `sandbox_base_container_image`, when the other one is set too. */
  unusedImage?: string;
}

/** Reads what users' settings ask of their sandboxes. */
@Injectable()
export class UserOverrides {
  constructor(private readonly settings: SettingsRepository) {}

  /** Null when the user asks for nothing special. */
  async find(userId: string): Promise<SandboxOverrides | null> {
    return toOverrides(await this.settings.load(userId));
  }
}

interface SandboxSettings {
  remote_runtime_resource_factor: number | null;
  sandbox_base_container_image: string | null;
  sandbox_runtime_container_image: string | null;
}

/** @param settings null: the user has stored none */
export function toOverrides(settings: SandboxSettings | null): SandboxOverrides | null {
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
