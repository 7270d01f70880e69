import path from 'node:path';
import type { AppConfig } from '../config/app-config.js';
import { webAppLink } from '../web/web-app-link.js';

/** `issueCode` makes the one-time code in the link to the web application; null where others may read this. */
export function welcomeText(
  config: AppConfig,
  port: number,
  workingDirectory: string,
  hasKeyFile: boolean,
  issueCode: (() => string) | null = null,
): string {
  const { host, publicUrl, webAppFolder } = config.http;
  const address = publicUrl ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const absolute = path.join(config.dataDir, 'api-key');
  const relative = path.relative(workingDirectory, absolute);
  const keyFile = relative.startsWith('..') ? absolute : relative;
  const key = hasKeyFile ? `$(cat ${shellWord(keyFile)})` : 'YOUR_KEY';
  const curl = `curl -H "X-Session-API-Key: ${key}"`;
  // The host name that addresses of agent servers have.
  const webApp =
    webAppFolder === null ? '' : webAppLink(publicUrl ?? `http://localhost:${port}`, host, issueCode);
  return `
  Slipway      ${address}${webApp === '' ? '' : `\n  Web app      ${webApp}`}
  Try it       ${address}/docs
  Your key     ${hasKeyFile ? keyFile : 'the one you configured or made with npm run keys -- create'}

  The main job, with a token of GitHub, GitLab or Bitbucket (email:api_token there) in place of YOUR_TOKEN:

  ${curl} -H 'Content-Type: application/json' -d '{"language":"en","git_user_name":"You"}' ${address}/api/settings
  ${curl} -H 'Content-Type: application/json' -d '{"provider_tokens":{"github":{"token":"YOUR_TOKEN"}}}' ${address}/api/add-git-providers
  ${curl} ${address}/api/user/suggested-tasks

`;
}

function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
