import { LOOP_REPOSITORY } from './automations-world.js';
import type { FakeWorld } from '../test/fakes/fake-world.js';

/** The pull request of the story: a count that is off by one, and a check that fails because of it. */
export const DEMO_REPOSITORY = 'quayside/storefront';
export const DEMO_ISSUE = 479;

const HOUR_MS = 3_600_000;

/**
 * The open work of Nadia, a developer at a small shipping company, on three hosts: the apps on GitHub, the platform on
 * GitLab, and what is left of the old system on Bitbucket.
 *
 * @param now epoch milliseconds; all times are some hours before it
 */
export function demoWorld(now: number): { github: FakeWorld; gitlab: FakeWorld; bitbucket: FakeWorld } {
  const ago = (hours: number) => new Date(now - hours * HOUR_MS).toISOString();
  const user = { id: '20817', login: 'nadia', name: 'Nadia Okafor', email: 'nadia@quayside.example' };
  const instructed = ['README.md', 'AGENTS.md', 'check.sh', 'checks'];
  return {
    github: {
      token: 'ghp_demo-token-of-nadia',
      user,
      repositories: [
        { name: 'quayside/storefront', activeAt: ago(1), rootEntries: instructed },
        { name: 'quayside/label-printer', activeAt: ago(5) },
        { name: 'quayside/driver-app', activeAt: ago(9), rootEntries: instructed },
        { name: LOOP_REPOSITORY, activeAt: ago(28), rootEntries: instructed },
        { name: 'nadia/dotfiles', activeAt: ago(30), rootEntries: ['README.md', 'CLAUDE.md'] },
        { name: 'nadia/label-printer', activeAt: ago(40), fork: true, forkOf: 'quayside/label-printer' },
        { name: 'quayside/design-tokens', activeAt: ago(200), archived: true },
      ],
      changeRequests: [
        {
          repository: 'quayside/storefront',
          number: 482,
          title: 'Show delivery windows in the customer’s time zone',
          updatedAt: ago(1),
          conflicts: 'yes',
          checks: 'failing',
        },
        {
          repository: 'quayside/storefront',
          number: 479,
          title: 'Retry the address lookup once before giving up',
          updatedAt: ago(3),
          conflicts: 'no',
          checks: 'failing',
        },
        {
          repository: 'quayside/driver-app',
          number: 91,
          title: 'Keep scanned parcels when the signal drops',
          updatedAt: ago(9),
          conflicts: 'no',
          checks: 'passing',
          unresolved: 'thread',
        },
        {
          repository: 'quayside/label-printer',
          number: 17,
          fork: 'nadia/label-printer',
          title: 'Print return labels on half sheets',
          updatedAt: ago(6),
          conflicts: 'no',
          checks: 'passing',
        },
      ],
      issues: [
        {
          repository: 'quayside/storefront',
          number: 471,
          title: 'Postcode field rejects codes with a leading zero',
          updatedAt: ago(4),
        },
        {
          repository: 'quayside/driver-app',
          number: 88,
          title: 'Map stays blank after waking the phone',
          updatedAt: ago(26),
        },
      ],
    },
    gitlab: {
      token: 'glpat-demo-token-of-nadia',
      user,
      repositories: [
        { name: 'quayside/platform/routing', activeAt: ago(2), rootEntries: instructed },
        { name: 'quayside/platform/billing', activeAt: ago(7), rootEntries: instructed },
        { name: 'quayside/infra/clusters', activeAt: ago(20) },
        { name: 'quayside/platform/events', activeAt: ago(50), rootEntries: instructed },
      ],
      changeRequests: [
        {
          repository: 'quayside/platform/routing',
          number: 204,
          title: 'Plan routes around bridge closures',
          updatedAt: ago(2),
          conflicts: 'no',
          checks: 'failing',
        },
        {
          repository: 'quayside/platform/billing',
          number: 133,
          title: 'Round VAT per invoice line, not per invoice',
          updatedAt: ago(7),
          conflicts: 'no',
          checks: 'passing',
          unresolved: 'thread',
        },
        {
          repository: 'quayside/platform/billing',
          number: 131,
          title: 'Draft: move invoices to the new archive',
          updatedAt: ago(28),
          conflicts: 'yes',
          draft: true,
        },
      ],
      issues: [
        {
          repository: 'quayside/platform/routing',
          number: 196,
          title: 'Two vans are sent to the same stop after a merge of tours',
          updatedAt: ago(12),
        },
      ],
    },
    bitbucket: {
      token: 'nadia@quayside.example:demo-token-of-nadia',
      user,
      repositories: [
        { name: 'quayside/legacy-erp', activeAt: ago(8), rootEntries: instructed },
        { name: 'quayside/edi-gateway', activeAt: ago(16) },
        { name: 'quayside/warehouse-terminals', activeAt: ago(70), rootEntries: instructed },
      ],
      changeRequests: [
        {
          repository: 'quayside/legacy-erp',
          number: 1204,
          title: 'Export stock levels every five minutes',
          updatedAt: ago(8),
          conflicts: 'no',
          checks: 'passing',
          unresolved: 'task',
        },
        {
          repository: 'quayside/edi-gateway',
          number: 56,
          title: 'Accept carrier messages in UTF-8',
          updatedAt: ago(16),
          conflicts: 'no',
          checks: 'passing',
        },
      ],
      issues: [],
    },
  };
}
