import type { SandboxWishes } from './sandbox.entity.js';

/** Members of the settings that ask something of sandboxes. */
export interface SandboxSettings {
  remote_runtime_resource_factor: number | null;
  sandbox_base_container_image: string | null;
  sandbox_runtime_container_image: string | null;
}

/** What a user's settings ask of a new sandbox; null when that is nothing. */
export function toWishes(settings: SandboxSettings | null): SandboxWishes | null {
  if (settings === null) {
    return null;
  }
  const { sandbox_base_container_image: base, sandbox_runtime_container_image: runtime } = settings;
  const wishes = {
    resourceFactor: settings.remote_runtime_resource_factor,
    // An image that is ready to run wins over one that would have to be made ready.
    image: runtime || base || null,
    ...(runtime && base && runtime !== base && { unusedImage: base }),
  };
  return wishes.resourceFactor === null && wishes.image === null ? null : wishes;
}
