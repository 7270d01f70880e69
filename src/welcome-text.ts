import path from 'node:path';
import type { AppConfig } from './config/app-config.js';

/** What a person at a terminal sees once the service listens: where it is and how to do the main job. */
export function welcomeText(config: AppConfig, port: number): string {
  const address = `http://${config.http.host.includes(':') ? `[${config.http.host}]` : config.http.host}:${port}`;
  const keyFile = path.relative(process.cwd(), path.join(config.dataDir, 'api-key'));
  const generatedKey = config.database.url === null && config.trust.bootstrapApiKey === null;
  const key = generatedKey ? `$(cat ${keyFile})` : '$API_KEY';
  return `
  Slipway listens on ${address}
  Documents (try every request there): ${address}/docs
  API key: ${generatedKey ? `in ${keyFile}` : 'the one you configured; more with npm run keys -- create'}

  The main job, in three lines:

    KEY="${key}"
    curl -H "X-Session-API-Key: $KEY" -H 'Content-Type: application/json' ${address}/api/add-git-providers -d '{"provider_tokens":{"github":{"token":"YOUR_TOKEN"}}}'
    curl -H "X-Session-API-Key: $KEY" ${address}/api/user/suggested-tasks

`;
}
