import type Docker from 'dockerode';
import { inTime } from './engine-deadline.js';
import { engineFailure } from './engine-failure.js';
import { AGENT_SERVER_LABEL } from './sandbox-names.js';
import { unlessStatus } from './unless-status.js';

/** What is known of an image that the engine has. */
export interface FoundImage {
  /** Of its content: another one after each build that changed something. */
  id: string;
  hasAgentServer: boolean;
  /** As `NAME=value`. */
  variables: readonly string[];
}

/** @returns null when the engine does not have it */
export async function findImage(docker: Docker, image: string): Promise<FoundImage | null> {
  try {
    const found = await inTime(unlessStatus([404], docker.getImage(image).inspect()));
    return (
      found && {
        id: found.Id,
        hasAgentServer: Boolean(found.Config.Labels?.[AGENT_SERVER_LABEL]),
        variables: found.Config.Env ?? [],
      }
    );
  } catch (error) {
    throw engineFailure(`the image ${image} cannot be looked at`, error);
  }
}
