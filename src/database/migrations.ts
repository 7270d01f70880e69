import { CreateSchema1766300000000 } from './migrations/1766300000000-create-schema.js';
import { AddAutomations1766400000000 } from './migrations/1766400000000-add-automations.js';
import { BoundStoredBytes1766530000000 } from './migrations/1766530000000-bound-stored-bytes.js';
import { RememberBodiesAndLimits1766540000000 } from './migrations/1766540000000-remember-bodies-and-limits.js';
import { KeepChanges1766550000000 } from './migrations/1766550000000-keep-changes.js';
import { AddCheckoutSettings1766560000000 } from './migrations/1766560000000-add-checkout-settings.js';
import { LeaseWebhookDeliveries1766600000000 } from './migrations/1766600000000-lease-webhook-deliveries.js';
import { LeaseRunsAndStarts1766610000000 } from './migrations/1766610000000-lease-runs-and-starts.js';
import { AddIdentities1766740000000 } from './migrations/1766740000000-add-identities.js';
import { AddEgress1766890000000 } from './migrations/1766890000000-add-egress.js';
import { AddPlaceholders1766891000000 } from './migrations/1766891000000-add-placeholders.js';
import { LeaseFollowedPullRequests1766620000000 } from './migrations/1766620000000-lease-followed-pull-requests.js';
import { LeasePendingMessages1766780000000 } from './migrations/1766780000000-lease-pending-messages.js';
import { LeaseSandboxes1766790000000 } from './migrations/1766790000000-lease-sandboxes.js';
import { AddPushSubscriptions1766700000000 } from './migrations/1766700000000-add-push-subscriptions.js';
import { LimitKeysAndUsers1766710000000 } from './migrations/1766710000000-limit-keys-and-users.js';
import { RememberSignIns1766750000000 } from './migrations/1766750000000-remember-sign-ins.js';
import { StoreSettingsAsDocuments1766900000000 } from './migrations/1766900000000-store-settings-as-documents.js';
import { AddRolesAndVisibility1766910000000 } from './migrations/1766910000000-add-roles-and-visibility.js';
import { IndexSharedConversations1766911000000 } from './migrations/1766911000000-index-shared-conversations.js';
import { AddInstallationOrganization1766920000000 } from './migrations/1766920000000-add-installation-organization.js';
import { AddEgressOfUsers1766930000000 } from './migrations/1766930000000-add-egress-of-users.js';
import { AddHostsOfSecrets1766940000000 } from './migrations/1766940000000-add-hosts-of-secrets.js';
import { NameCausesAndCountEvents1766760000000 } from './migrations/1766760000000-name-causes-and-count-events.js';
import { AddTokenRenewals1766950000000 } from './migrations/1766950000000-add-token-renewals.js';
import { IndexChangedConversations1766970000000 } from './migrations/1766970000000-index-changed-conversations.js';
import { LimitKeysToRepositories1766951000000 } from './migrations/1766951000000-limit-keys-to-repositories.js';
import { IndexRepositoriesOfConversations1766952000000 } from './migrations/1766952000000-index-repositories-of-conversations.js';
import { AddGitInstallations1766953000000 } from './migrations/1766953000000-add-git-installations.js';
import { AddModelUsage1766956000000 } from './migrations/1766956000000-add-model-usage.js';
import { AddPhaseOfSecrets1766957000000 } from './migrations/1766957000000-add-phase-of-secrets.js';
import { RememberGroups1766971000000 } from './migrations/1766971000000-remember-groups.js';
import { KeepAuthoritiesOfWarmSandboxes1766974000000 } from './migrations/1766974000000-keep-authorities-of-warm-sandboxes.js';
import { RememberMakersOfLinks1766975000000 } from './migrations/1766975000000-remember-makers-of-links.js';

/** Oldest first, listed for reviewers. A released one is never edited: databases that have it would not change. */
export const MIGRATIONS = [
  CreateSchema1766300000000,
  AddAutomations1766400000000,
  BoundStoredBytes1766530000000,
  RememberBodiesAndLimits1766540000000,
  KeepChanges1766550000000,
  AddCheckoutSettings1766560000000,
  LeaseWebhookDeliveries1766600000000,
  LeaseRunsAndStarts1766610000000,
  LeaseFollowedPullRequests1766620000000,
  AddPushSubscriptions1766700000000,
  LimitKeysAndUsers1766710000000,
  AddIdentities1766740000000,
  RememberSignIns1766750000000,
  NameCausesAndCountEvents1766760000000,
  LeasePendingMessages1766780000000,
  LeaseSandboxes1766790000000,
  AddEgress1766890000000,
  AddPlaceholders1766891000000,
  StoreSettingsAsDocuments1766900000000,
  AddRolesAndVisibility1766910000000,
  IndexSharedConversations1766911000000,
  AddInstallationOrganization1766920000000,
  AddEgressOfUsers1766930000000,
  AddHostsOfSecrets1766940000000,
  AddTokenRenewals1766950000000,
  LimitKeysToRepositories1766951000000,
  IndexRepositoriesOfConversations1766952000000,
  AddGitInstallations1766953000000,
  AddModelUsage1766956000000,
  AddPhaseOfSecrets1766957000000,
  IndexChangedConversations1766970000000,
  RememberGroups1766971000000,
  KeepAuthoritiesOfWarmSandboxes1766974000000,
  RememberMakersOfLinks1766975000000,
];
