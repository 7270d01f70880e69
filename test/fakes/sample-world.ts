import type { FakeWorld } from './fake-world.js';

/** A developer with work in three repositories of two owners, fresh for each caller. Everything in it is well defined. */
export function sampleWorld(): FakeWorld {
  return {
    token: 'secret-token-of-mona-5f2c81',
    user: { id: '4217', login: 'mona', name: 'Mona Lisa', email: 'mona@example.com' },
    repositories: [
      { name: 'mona/notes', activeAt: '2026-11-02T07:30:00Z', rootEntries: ['README.md', 'AGENTS.md'] },
      { name: 'octo/app', activeAt: '2026-11-20T16:45:12Z', branches: ['release', 'fix/it'] },
      {
        name: 'octo/library',
        activeAt: '2026-11-18T09:00:00Z',
        defaultBranch: 'trunk',
        branches: ['fix/it'],
        rootEntries: ['README.md', '.openhands', 'src'],
        microagents: ['README.md', 'release.md'],
      },
    ],
    changeRequests: [
      {
        repository: 'octo/app',
        number: 12,
        title: 'Move the parser to streams',
        updatedAt: '2026-11-20T16:45:12Z',
        conflicts: 'yes',
        checks: 'failing',
        unresolved: 'thread',
      },
      {
        repository: 'octo/app',
        number: 15,
        title: 'fix: "quoted" <b>tags</b> & a back\\slash',
        updatedAt: '2026-11-19T11:00:00Z',
        checks: 'failing',
      },
      {
        repository: 'octo/library',
        number: 12,
        title: 'Übersetzung für 日本語 🚢',
        updatedAt: '2026-11-18T08:59:00Z',
        checks: 'passing',
        unresolved: 'changes_requested',
      },
      {
        repository: 'octo/library',
        number: 7,
        title: 'Draft: try a smaller cache',
        updatedAt: '2026-11-10T20:15:30Z',
        draft: true,
        checks: 'pending',
      },
      {
        repository: 'mona/notes',
        number: 3,
        title: 'Add notes of November',
        updatedAt: '2026-11-02T07:00:00Z',
      },
    ],
    issues: [
      {
        repository: 'octo/app',
        number: 30,
        title: 'Crash when the file is empty',
        updatedAt: '2026-11-17T10:00:00Z',
      },
      {
        repository: 'mona/notes',
        number: 2,
        title: 'Sort notes by date',
        updatedAt: '2026-11-01T12:00:00Z',
      },
    ],
  };
}
