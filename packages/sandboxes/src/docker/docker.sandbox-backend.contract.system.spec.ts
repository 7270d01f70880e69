import { afterAll, beforeAll, describe, it } from '@jest/globals';
import { AGENT_IMAGE, DockerHarness, type ImageVariant, imageVariant } from './docker.harness.js';
import { describeSandboxBackend } from '../sandbox-backend.contract.js';

if (AGENT_IMAGE === '') {
  describe('sandbox backend: docker', () => {
    it.todo(
      'needs an engine (DOCKER_HOST) and SLIPWAY_TEST_DOCKER_IMAGE, built by npm run image:agent-server',
    );
  });
} else {
  describe('an engine', () => {
    let broken: ImageVariant;

    beforeAll(async () => {
      broken = await imageVariant(['sh', '-c', 'echo it is broken; exit 7']);
    });

    afterAll(async () => {
      await broken.remove();
    });

    describeSandboxBackend('docker', () => DockerHarness.make(broken.image), {
      isolated: true,
      samePaths: true,
    });
  });
}
