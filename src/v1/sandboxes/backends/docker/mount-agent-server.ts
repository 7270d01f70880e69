import type { ContainerCreateOptions, ContainerInspectInfo, MountSettings } from 'dockerode';

/** Where our agent server and its Node.js are in the images that have them, and are mounted in others. */
export const AGENT_SERVER_FOLDER = '/opt/slipway';

/** How our own image starts it (Dockerfile). */
export const AGENT_SERVER_COMMAND = [
  `${AGENT_SERVER_FOLDER}/bin/node`,
  '--max-semi-space-size=2',
  `${AGENT_SERVER_FOLDER}/agent-server/main.js`,
  '--host',
  '0.0.0.0',
  '--port',
  '8000',
  '--secrets-stdin',
];

/**
 * The container of a sandbox whose image has no agent server: with ours beside what is in the image, read-only.
 *
 * @param volume has the files of our agent server
 */
export function mountAgentServer(options: ContainerCreateOptions, volume: string): ContainerCreateOptions {
  const mount: MountSettings = {
    Type: 'volume',
    Source: volume,
    Target: AGENT_SERVER_FOLDER,
    ReadOnly: true,
  };
  return {
    ...options,
    Entrypoint: AGENT_SERVER_COMMAND,
    // The image may name another one, which would end the server before it has put things in order.
    StopSignal: 'SIGTERM',
    HostConfig: { ...options.HostConfig, Mounts: [...(options.HostConfig?.Mounts ?? []), mount] },
  };
}

/**
 * A container, never to be started, that comes before the one of a sandbox whose image has no `/sandbox`: the engine gives
 * an empty volume the owner and the content of the folder that it is mounted over. It has the sandbox's name and labels,
 * so that it is found, and goes, like the sandbox's own when a start is cut off.
 *
 * @param image has our agent server, and the folder
 */
export function volumeOwner(options: ContainerCreateOptions, image: string): ContainerCreateOptions {
  return {
    ...(options.name !== undefined && { name: options.name }),
    Labels: options.Labels ?? {},
    Image: image,
    HostConfig: { NetworkMode: 'none', Mounts: options.HostConfig?.Mounts ?? [] },
  };
}

/** Whether a container runs our agent server in an image that has none. */
export function hasMountedServer({ Mounts }: Pick<ContainerInspectInfo, 'Mounts'>): boolean {
  return Mounts.some(({ Destination }) => Destination === AGENT_SERVER_FOLDER);
}
