import type Docker from 'dockerode';
import { engineStatus } from './engine-failure.js';
import { unlessStatus } from './unless-status.js';

/** Removes a container that does not run, without force: what still runs is somebody's. */
export async function removeContainer(docker: Docker, id: string): Promise<void> {
  const container = docker.getContainer(id);
  try {
    // `v`: volumes that the image itself asked for.
    await unlessStatus([404], container.remove({ v: true }));
  } catch (error) {
    if (engineStatus(error) !== 409 || (await unlessStatus([404], container.inspect()))?.State.Running) {
      throw error;
    }
    // Somebody else is at it already.
    await unlessStatus([404], container.wait({ condition: 'removed' }));
  }
}
