import { z } from 'zod';
import { GitProviderError } from '../git-provider.js';
import { notFound, parsedOrNull, type RefusalBody } from '../provider-errors.js';
import { githubFailure } from './github.client.js';

const messageSchema = z.object({ message: z.string() }).catch({ message: '' });

/** What GitHub's refusal of a request of the App itself means, and who can do what about it. `now` is epoch milliseconds. */
export function appRefusal(
  response: Response,
  body: RefusalBody,
  owner: string,
  now: number,
): GitProviderError {
  const message = messageOf(parsedOrNull(body.text));
  switch (response.status) {
    case 404:
      return /^integration\b/i.test(message) ? keyRefused(message) : notFound('installation');
    case 403:
      return /suspended/i.test(message)
        ? new GitProviderError('blocked_by_policy', { reason: suspended(owner) })
        : githubFailure(response, body, now);
    case 422:
      return new GitProviderError('insufficient_scope', {
        reason: /permission/i.test(message) ? lacking(owner, 'what it asks for') : notSelected(owner),
      });
    default:
      return githubFailure(response, body, now);
  }
}

export function messageOf(value: unknown): string {
  return messageSchema.parse(value).message;
}

export function keyRefused(message: string): GitProviderError {
  const cause = /claim|clock|expir|issued at/i.test(message)
    ? "the clock of this machine differs from GitHub's by too much: the operator must set it"
    : 'GitHub does not know the App by its key: the operator must compare GITHUB_APP_ID and GITHUB_APP_PRIVATE_KEY with its page, and GITHUB_API_URL with its host';
  return new GitProviderError('blocked_by_policy', { reason: cause });
}

export function suspended(owner: string): string {
  return `the installation of the GitHub App at ${owner} is suspended: an owner of ${owner} ends that in its settings, under GitHub Apps`;
}

export function notInstalled(place: string): string {
  return `the GitHub App is not installed for ${place}: an owner installs it there, and selects the repository`;
}

/** @param what permissions */
export function lacking(owner: string, what: string): string {
  return `the installation of the GitHub App at ${owner} lacks ${what}: the operator adds that to the App, and an owner of ${owner} accepts it`;
}

function notSelected(owner: string): string {
  return `the installation of the GitHub App at ${owner} does not have the repository: an owner of ${owner} selects it in its settings, under GitHub Apps`;
}
