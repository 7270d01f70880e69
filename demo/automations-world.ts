import type { FakeChangeRequest, FakeIssue, FakeWorld } from '../test/fakes/fake-world.js';
import type { DemoHost } from './demo-host.js';

export const LOOP_REPOSITORY = 'quayside/parcel-labels';
export const LOOP_BRANCH = 'fix/postcodes';
export const LOOP_ISSUE: FakeIssue = {
  repository: LOOP_REPOSITORY,
  number: 23,
  title: 'Labels for 01067 Dresden say 1067',
  updatedAt: new Date().toISOString(),
};

/** An addition takes the leading zero of a postcode away; so does printf with `%05d`, for which it is octal. */
const FILES = {
  'label.sh': '# Prints the postcode of a label.\nexpr "$1" + 0\n',
  'check.sh': `for code in 21073 01067; do
  printed=$(sh label.sh "$code")
  if [ "$printed" != "$code" ]; then
    echo "FAIL: $code is printed as $printed"
    exit 1
  fi
done
echo "ok: 2 postcodes"
`,
};

/** What the automation works on, and what a colleague says to its pull request. */
export async function fillLoop({ repositories, reviews }: DemoHost): Promise<void> {
  await repositories.commit(LOOP_REPOSITORY, 'main', FILES);
  reviews.set(LOOP_BRANCH, {
    text: 'And without a postcode? An empty line is no label.',
    path: 'label.sh',
  });
}

/** @throws Error when the agent has opened none */
export function openedPullRequest({ changeRequests }: FakeWorld): FakeChangeRequest {
  const opened = changeRequests.find(({ sourceBranch }) => sourceBranch === LOOP_BRANCH);
  if (!opened) {
    throw new Error('the agent opened no pull request');
  }
  return opened;
}
