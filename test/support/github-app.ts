import { generateKeyPairSync } from 'node:crypto';
import type { FakeGithubApp } from '../fakes/fake-github.app.js';

export const APP_PERMISSIONS = {
  contents: 'write',
  pull_requests: 'write',
  metadata: 'read',
  issues: 'write',
  checks: 'read',
  packages: 'read',
};

const { publicKey, privateKey } = generateKeyPairSync('rsa', { modulusLength: 2_048 });

/** An App of the operator with one installation, and the variables that name it. */
export function githubApp(owner = 'octo'): { app: FakeGithubApp; environment: Record<string, string> } {
  const app = {
    id: '4217',
    publicKey,
    installations: [{ id: 77, owner, permissions: { ...APP_PERMISSIONS } }],
    issued: new Map(),
    now: () => Date.now(),
  };
  return {
    app,
    environment: {
      GITHUB_APP_ID: app.id,
      GITHUB_APP_PRIVATE_KEY: privateKey.export({ type: 'pkcs1', format: 'pem' }).toString(),
      GITHUB_APP_FOR: 'members',
    },
  };
}
