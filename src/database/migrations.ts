import { CreateUsersSettingsAndTokens1763700000000 } from './migrations/1763700000000-create-users-settings-and-tokens.js';
import { CreateConversationsAndSandboxes1763800000000 } from './migrations/1763800000000-create-conversations-and-sandboxes.js';
import { InstallJobQueue1763900000000 } from './migrations/1763900000000-install-job-queue.js';
import { AddPortAddresses1764000000000 } from './migrations/1764000000000-add-port-addresses.js';
import { IndexUnfinishedStarts1764100000000 } from './migrations/1764100000000-index-unfinished-starts.js';
import { AddModelAddresses1764200000000 } from './migrations/1764200000000-add-model-addresses.js';
import { AddExposePorts1764300000000 } from './migrations/1764300000000-add-expose-ports.js';
import { AdoptAndQueue1764400000000 } from './migrations/1764400000000-adopt-and-queue.js';
import { AddProfilesAndDetails1764500000000 } from './migrations/1764500000000-add-profiles-and-details.js';
import { AddWebhookEndpoints1764600000000 } from './migrations/1764600000000-add-webhook-endpoints.js';
import { AddResultsAndMetadata1764700000000 } from './migrations/1764700000000-add-results-and-metadata.js';
import { AddAgentsOfConversations1764900000000 } from './migrations/1764900000000-add-agents-of-conversations.js';
import { AddAuditEntries1765000000000 } from './migrations/1765000000000-add-audit-entries.js';
import { CreateWarmSandboxes1765100000000 } from './migrations/1765100000000-create-warm-sandboxes.js';
import { AddOrphanedSandboxes1765200000000 } from './migrations/1765200000000-add-orphaned-sandboxes.js';
import { AddTracesOfSandboxes1765500000000 } from './migrations/1765500000000-add-traces-of-sandboxes.js';
import { IndexTagsAndDeliveries1765700000000 } from './migrations/1765700000000-index-tags-and-deliveries.js';
import { AddAgentKinds1765800000000 } from './migrations/1765800000000-add-agent-kinds.js';
import { PartitionEvents1765900000000 } from './migrations/1765900000000-partition-events.js';
import { IndexWhatGrows1766100000000 } from './migrations/1766100000000-index-what-grows.js';
import { TrimStartTasks1766200000000 } from './migrations/1766200000000-trim-start-tasks.js';
import { BoundDeliveriesAndNameRequests1766250000000 } from './migrations/1766250000000-bound-deliveries-and-name-requests.js';
import { AddErrorsOfConversations1766290000000 } from './migrations/1766290000000-add-errors-of-conversations.js';

/** Every migration, oldest first. Listed by name, so that a reviewer sees here what runs. */
export const MIGRATIONS = [
  CreateUsersSettingsAndTokens1763700000000,
  CreateConversationsAndSandboxes1763800000000,
  InstallJobQueue1763900000000,
  AddPortAddresses1764000000000,
  IndexUnfinishedStarts1764100000000,
  AddModelAddresses1764200000000,
  AddExposePorts1764300000000,
  AdoptAndQueue1764400000000,
  AddProfilesAndDetails1764500000000,
  AddWebhookEndpoints1764600000000,
  AddResultsAndMetadata1764700000000,
  AddAgentsOfConversations1764900000000,
  AddAuditEntries1765000000000,
  CreateWarmSandboxes1765100000000,
  AddOrphanedSandboxes1765200000000,
  AddTracesOfSandboxes1765500000000,
  IndexTagsAndDeliveries1765700000000,
  AddAgentKinds1765800000000,
  PartitionEvents1765900000000,
  IndexWhatGrows1766100000000,
  TrimStartTasks1766200000000,
  BoundDeliveriesAndNameRequests1766250000000,
  AddErrorsOfConversations1766290000000,
];
