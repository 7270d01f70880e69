import { isDeepStrictEqual } from 'node:util';
import { Injectable } from '@nestjs/common';
import type { EntityManager } from 'typeorm';
import { addressProblem } from '@slipway/common/http/address-rules.js';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { isJsonObject, type JsonObject, mapLeaves, without } from '@slipway/common/json-access.js';
import { MASK } from '@slipway/common/secret-mask.js';
import { INSTALLATION_ORGANIZATION_ID } from '../../organizations/installation-organization.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { type InputProblem, requireNone } from '@slipway/api/errors/problem-error.js';
import { settingsNotFound } from '../flat/settings.service.js';
import {
  apiIn,
  type CheckedModel,
  headersIn,
  ModelCheck,
  type ModelWarning,
  isSameModelServer,
} from '@slipway/models/model-check.js';
import type { SettingsDetails } from '@slipway/settings/nested-settings.js';
import { unmasked } from '@slipway/api/validation/masked-secrets.js';
import { fieldProblem, findField, isSecretPath, LLM_ECHOES } from '@slipway/settings/setting-fields.js';
import type { SettingsColumn } from '@slipway/settings/settings.schema.js';
import { type CalledModel, type KeyedModel, llmOf, llmOver } from '@slipway/settings/settings-layers.js';
import { SettingsRepository } from '../settings.repository.js';
import { SharedSettings } from '../shared-settings.js';
import { type ClearLlmProfile, LlmProfileRepository } from './llm-profile.repository.js';
import { type FoundProfile, type SaveProfileDto, textOrNull } from './profiles.dto.js';

/** Which model: the given one, a stored one, or by default that of the settings. */
export interface ModelSelection {
  profile?: string | null;
  llm?: JsonObject | null;
}

/**
 * The settings' model with its key and all its parameters, in the form of a profile; members without a value are
 * absent.
 */
function settingsLlm(called: CalledModel, { agent: { llm } }: SettingsDetails): JsonObject {
  return withoutBlanks({ ...(isJsonObject(llm) && llm), ...called });
}

function withoutBlanks(config: JsonObject): JsonObject {
  return Object.fromEntries(
    Object.entries(config).filter(([, value]) => value !== null && value !== undefined && value !== ''),
  );
}

/**
 * The name of the profile that the settings follow. The stored mark is not enough, so the values are compared too: a user
 * who changes the model through any route no longer follows the profile.
 */
export function activeProfile(
  profiles: readonly ClearLlmProfile[],
  llm: CalledModel,
  details: SettingsDetails,
): string | null {
  const marked = profiles.find(({ active }) => active);
  if (!marked) {
    return null;
  }
  const current = settingsLlm(llm, details);
  // A profile without a key is used with the key of the settings.
  const compared = 'api_key' in marked.config ? current : without(current, ['api_key']);
  return isDeepStrictEqual({ ...marked.config }, { ...compared }) ? marked.name : null;
}

const MAX_PROFILES = 100;
const MAX_PROFILE_BYTES = 16 * 1024;

@Injectable()
export class ProfilesService {
  constructor(
    private readonly profiles: LlmProfileRepository,
    private readonly settings: SettingsRepository,
    private readonly addresses: OutboundAddresses,
    private readonly models: ModelCheck,
    private readonly shared: SharedSettings,
  ) {}

  /** Oldest first, those of the organization last, and the name of the one that the settings follow. */
  async list(userId: string): Promise<{ profiles: FoundProfile[]; active: string | null }> {
    const isShared = userId === INSTALLATION_ORGANIZATION_ID;
    const [profiles, shared, { settings, keys, details }] = await Promise.all([
      this.profiles.list(userId),
      isShared ? [] : this.profiles.list(INSTALLATION_ORGANIZATION_ID),
      this.settings.loadWithKeys(userId),
    ]);
    const names = new Set(profiles.map(({ name }) => name));
    const source = isShared ? 'organization' : 'user';
    return {
      profiles: [
        ...profiles.map((profile) => ({ ...profile, source }) as const),
        ...shared
          .filter(({ name }) => !names.has(name))
          .map((profile) => ({ ...profile, source: 'organization' }) as const),
      ],
      active: settings && activeProfile(profiles, llmOf(settings, keys), details),
    };
  }

  /** One of the user's, or else of the organization's. @throws DomainError not_found for an unknown name */
  async find(userId: string, name: string): Promise<FoundProfile> {
    const own = await this.profiles.findNamed(userId, name);
    if (own !== null) {
      return { ...own, source: userId === INSTALLATION_ORGANIZATION_ID ? 'organization' : 'user' };
    }
    const shared = required(await this.profiles.findNamed(INSTALLATION_ORGANIZATION_ID, name), name);
    return { ...shared, source: 'organization' };
  }

  /**
   * Stores a profile, or replaces the one of that name.
   * @returns a warning when the server of a changed model does not accept it
   * @throws InvalidInputError for invalid members; DomainError conflict when the user has the maximum number of profiles
   */
  async save(userId: string, name: string, request: SaveProfileDto): Promise<ModelWarning | null> {
    let changed: CheckedModel | null = null;
    await this.settings.transaction(userId, async (manager) => {
      const existing = await this.profiles.findNamed(userId, name, manager);
      const config = this.checked(await this.requested(manager, userId, request, existing));
      const model = modelOf(config);
      // Without a configuration of its own it is the settings' model, which was checked there.
      changed =
        !request.llm || (existing && isDeepStrictEqual(modelOf(existing.config), model)) ? null : model;
      if (existing) {
        await this.profiles.replace(manager, userId, existing, config);
        return;
      }
      if ((await this.profiles.countOf(userId, manager)) >= MAX_PROFILES) {
        throw tooManyProfiles();
      }
      await this.profiles.add(manager, userId, name, config);
    });
    return changed && (await this.models.warning(userId, changed));
  }

  /**
   * Does nothing for an unknown name, and refuses one of the organization. If the settings followed the removed profile, they follow the oldest other one.
   */
  async remove(userId: string, name: string): Promise<void> {
    await this.settings.transaction(userId, async (manager) => {
      const profiles = await this.profiles.list(userId, manager);
      const removed = profiles.find((profile) => profile.name === name);
      if (!removed) {
        await this.refuseShared(manager, name);
        return;
      }
      const { settings, keys, details } = await this.settings.loadWithKeys(userId, manager);
      const wasActive = settings !== null && activeProfile(profiles, llmOf(settings, keys), details) === name;
      await this.profiles.removeOne(manager, userId, removed);
      const [oldest] = profiles.filter((profile) => profile !== removed);
      if (wasActive && oldest) {
        await this.activateWithin(manager, userId, oldest);
      }
    });
  }

  /**
   * Sets the settings' model, address, key and parameters to those of the profile.
   * @throws DomainError not_found for an unknown name, conflict for one of the organization
   */
  async activate(userId: string, name: string): Promise<ClearLlmProfile> {
    let found: ClearLlmProfile | null = null;
    await this.settings.transaction(userId, async (manager) => {
      found = await this.ownedBy(manager, userId, name);
      await this.activateWithin(manager, userId, found);
    });
    return required(found, name);
  }

  /** @throws DomainError not_found for an unknown name, conflict for one of the organization and for a new name that is taken */
  async rename(userId: string, name: string, newName: string): Promise<void> {
    await this.settings.transaction(userId, async (manager) => {
      const profile = await this.ownedBy(manager, userId, name);
      if (newName === name) {
        return;
      }
      if ((await this.profiles.findNamed(userId, newName, manager)) !== null) {
        throw profileNameTaken(newName);
      }
      await this.profiles.renameTo(manager, userId, profile, newName);
    });
  }

  /**
   * A stored model, the given one or that of the settings, with its key in clear. One without a key gets that of the
   * settings of its owner if it is for the same server.
   * @throws DomainError not_found for an unknown name; InvalidInputError for members that are none
   */
  async selected(userId: string, { profile, llm }: ModelSelection): Promise<JsonObject> {
    if (typeof profile !== 'string' && !llm) {
      const { settings, keys, details } = await this.settings.loadWithKeys(userId);
      const { llm: parameters } = details.agent;
      const stored: KeyedModel = {
        owner: 'user',
        llm: llmOf(settings, keys),
        ...(isJsonObject(parameters) && { parameters }),
      };
      const called = llmOver(stored, await this.shared.below(userId)) ?? stored;
      return withoutBlanks({ ...called.parameters, ...called.llm });
    }
    if (llm) {
      requireNone(llmProblems(llm));
    }
    const found = llm ? null : await this.find(userId, profile ?? '');
    const config = found?.config ?? this.checked(withoutBlanks(llm ?? {}));
    const ownerId = found?.source === 'organization' ? INSTALLATION_ORGANIZATION_ID : userId;
    const { settings, keys } = await this.settings.loadWithKeys(ownerId);
    const isKeyless = [null, MASK].includes(textOrNull(config['api_key']));
    const isSame = isSameModelServer(modelOf(config), llmOf(settings, keys));
    return isKeyless ? withoutBlanks({ ...config, api_key: isSame ? keys.llm_api_key : null }) : config;
  }

  private async ownedBy(manager: EntityManager, userId: string, name: string): Promise<ClearLlmProfile> {
    const own = await this.profiles.findNamed(userId, name, manager);
    if (own === null) {
      await this.refuseShared(manager, name);
    }
    return required(own, name);
  }

  /** The user could read the key of what is activated. */
  private async refuseShared(manager: EntityManager, name: string): Promise<void> {
    if ((await this.profiles.findNamed(INSTALLATION_ORGANIZATION_ID, name, manager)) !== null) {
      throw profileOfOrganization(name);
    }
  }

  private async activateWithin(
    manager: EntityManager,
    userId: string,
    profile: ClearLlmProfile,
  ): Promise<void> {
    const { config } = profile;
    const { settings, keys } = await this.settings.loadWithKeys(userId, manager);
    const { model, base_url, api_key } = modelOf(config);
    const isSameServer = isSameModelServer({ model, base_url }, llmOf(settings, keys));
    const changes = new Map<SettingsColumn, string | null>([
      ['llm_model', model],
      ['llm_base_url', base_url],
    ]);
    if (api_key !== null || !isSameServer) {
      // A key must not be sent to any server but the one it was stored for.
      changes.set('llm_api_key', api_key);
    }
    const llm = without(config, ['model', 'base_url', 'api_key']);
    await this.settings.mergeWithin(manager, userId, {
      columns: changes,
      details: (stored) => ({ ...stored, agent: { ...stored.agent, llm } }),
    });
    await this.profiles.markActive(manager, userId, profile);
  }

  private async requested(
    manager: EntityManager,
    userId: string,
    { llm, include_secrets: includeSecrets = true, preserve_existing_api_key: keepsKey }: SaveProfileDto,
    existing: ClearLlmProfile | null,
  ): Promise<JsonObject> {
    let config: JsonObject;
    if (llm === undefined || llm === null) {
      const { settings, keys, details } = await this.settings.loadWithKeys(userId, manager);
      if (settings === null) {
        throw settingsNotFound();
      }
      config = settingsLlm(llmOf(settings, keys), details);
    } else {
      const problems = llmProblems(llm);
      const given = unmasked(llm, existing?.config ?? {}, ['body', 'llm'], problems, isSecretOfLlm);
      requireNone(problems);
      const { api_key: key } = given;
      const api_key = typeof key === 'string' ? key.trim() : existing?.config['api_key'];
      config = withoutBlanks({ ...without(given, LLM_ECHOES), api_key });
    }
    if (keepsKey === true && existing) {
      config = withoutBlanks({ ...config, api_key: existing.config['api_key'] });
    }
    return includeSecrets ? config : withoutSecrets(config);
  }

  /** @throws InvalidInputError for a configuration that no conversation could use */
  private checked(config: JsonObject): JsonObject {
    const problems: InputProblem[] = [];
    if (!textOrNull(config['model'])?.trim()) {
      problems.push({ loc: ['body', 'llm', 'model'], msg: 'This member is required.', type: 'missing' });
    }
    const { base_url: address } = modelOf(config);
    if (address !== null) {
      const msg = addressProblem(address, ['http', 'https']) ?? this.addresses.problem(address);
      if (msg !== null) {
        problems.push({ loc: ['body', 'llm', 'base_url'], msg, type: 'value_error' });
      }
    }
    if (JSON.stringify(config).length > MAX_PROFILE_BYTES) {
      const msg = `Expected at most ${MAX_PROFILE_BYTES / 1024} KiB.`;
      problems.push({ loc: ['body', 'llm'], msg, type: 'value_error' });
    }
    requireNone(problems);
    return config;
  }
}

function modelOf(config: JsonObject): CheckedModel {
  return {
    model: textOrNull(config['model']),
    base_url: textOrNull(config['base_url']),
    api_key: textOrNull(config['api_key']),
    headers: headersIn(config),
    api: apiIn(config),
  };
}

function llmProblems(llm: JsonObject): InputProblem[] {
  return Object.entries(llm).flatMap(([name, value]) => {
    const known = findField(['llm', name]);
    const problem = known
      ? value === null
        ? null
        : fieldProblem(known, value)
      : LLM_ECHOES.some((echo) => echo === name)
        ? null
        : { type: 'extra_forbidden', msg: 'This member is not known here.' };
    return problem ? [{ loc: ['body', 'llm', name], ...problem }] : [];
  });
}

function isSecretOfLlm(path: readonly string[]): boolean {
  return isSecretPath(['llm', ...path]);
}

function withoutSecrets(config: JsonObject): JsonObject {
  const copy = mapLeaves(config, (path, leaf) => (isSecretOfLlm(path) ? null : leaf));
  return withoutBlanks(copy as JsonObject);
}

export function tooManyProfiles(): DomainError {
  const detail = `Profile limit reached (${MAX_PROFILES}). Delete a profile before saving a new one.`;
  return new DomainError('conflict', detail);
}

export function unknownProfile(name: string): DomainError {
  return new DomainError('not_found', `Profile '${name}' not found`);
}

export function profileOfOrganization(name: string): DomainError {
  const detail = `Profile '${name}' belongs to the organization: name it in a start (llm_profile), or have an administrator change it with ?scope=organization.`;
  return new DomainError('conflict', detail);
}

export function profileNameTaken(name: string): DomainError {
  return new DomainError('conflict', `Profile '${name}' already exists`);
}

function required(profile: ClearLlmProfile | null, name: string): ClearLlmProfile {
  if (profile === null) {
    throw unknownProfile(name);
  }
  return profile;
}
