import { repositoryIn } from './fake-change-requests.js';
import type { FakeMember, FakeWorld } from './fake-world.js';

const NOBODY: FakeMember = { id: '0', login: 'nobody', permission: 'none' };

/** The user of the world, its members, and those who have written comments in it. */
function membersOf(world: FakeWorld, repository: string): FakeMember[] {
  const found = repositoryIn(world, repository);
  if (found === undefined) {
    return [];
  }
  const { id, login } = world.user;
  const comments = world.changeRequests.flatMap(({ followed }) => followed?.comments ?? []);
  return [
    { id, login, permission: found.writable === false ? 'read' : 'write' },
    ...(world.members ?? []),
    ...comments.map(({ author, mayWrite }, index): FakeMember => {
      return { id: String(10_000 + index), login: author, permission: mayWrite ? 'write' : 'read' };
    }),
  ];
}

/** What an account may do in a repository. */
export function memberOf(
  world: FakeWorld,
  repository: string,
  isWanted: (member: FakeMember) => boolean,
): FakeMember {
  return membersOf(world, repository).find(isWanted) ?? NOBODY;
}
