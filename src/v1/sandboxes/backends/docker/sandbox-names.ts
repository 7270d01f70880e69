/** Which installation a container or volume belongs to. */
export const INSTANCE_LABEL = 'slipway.instance';
/** Which sandbox it is. */
export const SANDBOX_LABEL = 'slipway.sandbox-id';
/** Epoch milliseconds of the sandbox's first start; its volume has it from then on, and each container that is made. */
export const CREATED_LABEL = 'slipway.created-at';
/** The ports of what agents start, JSON: numbers inside the container by name. Each container has it, or its image could have another one. */
export const PORTS_LABEL = 'slipway.ports';
/** Carried by images that have our agent server. */
export const AGENT_SERVER_LABEL = 'slipway.agent-server';
/** Of volumes that have the files of our agent server, and of what fills them: the id of the image that they are of. */
export const AGENT_FILES_LABEL = 'slipway.agent-server-of';

/** Name of a sandbox's container, and of its volume. */
export function sandboxName(id: string): string {
  return `slipway-${id}`;
}

/** Name of a sandbox within a network. Addresses have no upper case. */
export function sandboxHostName(id: string): string {
  return sandboxName(id).toLowerCase();
}
