import path from 'node:path';
import type { CodePurpose } from '../auth/one-time-codes.js';
import type { AppConfig } from '../config/app-config.js';
import { linkWithCode, webAppLink } from '../web/web-app-link.js';

interface Welcome {
  config: AppConfig;
  port: number;
  workingDirectory: string;
  hasKeyFile: boolean;
  hasConsole: boolean;
  /** Issues codes for links that sign a browser in; null when other people may read this text. */
  issueCode: ((purpose: CodePurpose) => string) | null;
}

/** The last lines of a start on a terminal. */
export function welcomeText({
  config,
  port,
  workingDirectory,
  hasKeyFile,
  hasConsole,
  issueCode,
}: Welcome): string {
  const { host, publicUrl, webAppFolder } = config.http;
  const address = publicUrl ?? `http://${host.includes(':') ? `[${host}]` : host}:${port}`;
  const absolute = path.join(config.dataDir, 'api-key');
  const relative = path.relative(workingDirectory, absolute);
  const keyFile = relative.startsWith('..') ? absolute : relative;
  const key = hasKeyFile ? `$(cat ${shellWord(keyFile)})` : 'YOUR_KEY';
  // The host name that addresses of agent servers have.
  const page = publicUrl ?? `http://localhost:${port}`;
  const rows = [
    ['Slipway', address],
    ...(hasConsole
      ? [['Console', linkWithCode(`${page}/console/`, host, issueCode && codeFor('session'))]]
      : []),
    ...(webAppFolder === null ? [] : [['Web app', webAppLink(page, host, issueCode && codeFor('key'))]]),
    ['API', `${address}/docs`],
    ...(hasKeyFile
      ? []
      : [['Your key', 'the one you configured or made with slipway keys create (in a clone: npm run keys)']]),
  ];
  const curl = 'curl -H "X-Session-API-Key: $KEY"';
  const json = "-H 'Content-Type: application/json'";
  return `
${rows.map(([name = '', value = '']) => `  ${name.padEnd(10)} ${value}`).join('\n')}

  The main job, with a token of GitHub, GitLab or Bitbucket (email:api_token there) in place of YOUR_TOKEN:

  KEY=${key}
  ${curl} ${json} ${address}/api/v1/settings -d '{"language":"en","git_user_name":"You"}'
  ${curl} ${json} ${address}/api/v1/secrets/git-providers -d '{"provider_tokens":{"github":{"token":"YOUR_TOKEN"}}}'
  ${curl} ${address}/api/user/suggested-tasks

`;

  function codeFor(purpose: CodePurpose): () => string {
    return () => issueCode?.(purpose) ?? '';
  }
}

/** What Ctrl-C does not end; empty when nothing is left. `command` is how `slipway` is called here. */
export function farewellText(running: number, command: string): string {
  return running === 0
    ? ''
    : `
  ${running === 1 ? '1 sandbox keeps' : `${running} sandboxes keep`} running, with what the agents in ${running === 1 ? 'it' : 'them'} do; the next start finds ${running === 1 ? 'it' : 'them'} again.
  To end ${running === 1 ? 'it' : 'them'}: ${command} sandboxes stop --all

`;
}

function shellWord(text: string): string {
  return /^[\w./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}
