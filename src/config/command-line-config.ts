import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { ConfigError } from '@slipway/common/errors/config.error.js';
import { loadConfig } from './load-config.js';

/** How the commands of `slipway` reach the service. */
export interface CommandLineConfig {
  /** Has no trailing slash. */
  url: string;
  /** Null: requests carry none. */
  key: string | null;
  /** Whether the service is one of this machine, configured like this process. */
  isLocal: boolean;
}

/** `SLIPWAY_URL` and `SLIPWAY_KEY`, else what the service has with the same configuration. @throws ConfigError */
export function loadCommandLineConfig(): CommandLineConfig {
  const { SLIPWAY_URL: url } = process.env;
  const key = process.env['SLIPWAY_KEY'] || null;
  if (url) {
    if (!/^https?:\/\//i.test(url) || !URL.canParse(url)) {
      throw new ConfigError(
        'SLIPWAY_URL: must be the address of a service, such as https://slipway.example.com',
      );
    }
    return { url: url.replace(/\/+$/, ''), key, isLocal: false };
  }
  const { dataDir, http } = loadConfig();
  const host = ['0.0.0.0', '::'].includes(http.host) ? '127.0.0.1' : http.host;
  const file = path.join(dataDir, 'api-key');
  return {
    url: `http://${host.includes(':') ? `[${host}]` : host}:${http.port}`,
    key: key ?? (existsSync(file) ? readFileSync(file, 'utf8').trim() : null),
    isLocal: true,
  };
}
