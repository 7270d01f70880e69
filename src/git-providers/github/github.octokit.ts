import { Octokit } from '@octokit/rest';

const SILENT = { debug: silence, info: silence, warn: silence, error: silence };

/** An octokit that keeps no credentials, speaks to nobody by itself and says nothing on the console. */
export function createOctokit(): Octokit {
  return new Octokit({ userAgent: 'slipway', log: SILENT, request: { log: SILENT } });
}

function silence(): void {}
