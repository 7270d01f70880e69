import { describe, expect, it } from '@jest/globals';
import { toOverrides } from './user-overrides.js';

describe('toOverrides', () => {
  const none = {
    remote_runtime_resource_factor: null,
    sandbox_base_container_image: null,
    sandbox_runtime_container_image: null,
  };

  it.each([
    [null, null],
    [none, null],
    [
      { ...none, remote_runtime_resource_factor: 2 },
      { resourceFactor: 2, image: null },
    ],
    [
      { ...none, sandbox_base_container_image: 'base' },
      { resourceFactor: null, image: 'base' },
    ],
    [
      { ...none, sandbox_base_container_image: 'base', sandbox_runtime_container_image: 'run' },
      { resourceFactor: null, image: 'run', unusedImage: 'base' },
    ],
    [
      { ...none, sandbox_base_container_image: 'base', sandbox_runtime_container_image: '' },
      { resourceFactor: null, image: 'base' },
    ],
  ])('%j: %j', (settings, overrides) => {
    expect(toOverrides(settings)).toEqual(overrides);
  });
});
