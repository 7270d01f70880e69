import type Docker from 'dockerode';
import { jsonNumber, jsonText } from '../../../../common/json-access.js';

/** What an engine can do. */
export interface EngineFacts {
  version: string;
  processors: number;
  /** Whether `host-gateway` may stand for the host's address: Docker 20.10, API 1.41. */
  knowsHostGateway: boolean;
  /** Where it keeps images and volumes, as its own machine calls that folder; null when it does not say. */
  rootDir: string | null;
}

const HOST_GATEWAY_API = 41;

/** Asks the engine about itself. */
export async function readEngineFacts(docker: Docker): Promise<EngineFacts> {
  const info: unknown = await docker.info();
  const version = await docker.version();
  const [major = 0, minor = 0] = version.ApiVersion.split('.').map(Number);
  return {
    version: version.Version,
    processors: jsonNumber(info, 'NCPU') ?? 1,
    knowsHostGateway: major > 1 || minor >= HOST_GATEWAY_API,
    rootDir: jsonText(info, 'DockerRootDir'),
  };
}
