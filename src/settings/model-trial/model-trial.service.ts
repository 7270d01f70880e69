import { Injectable } from '@nestjs/common';
import { OutboundAddresses } from '@slipway/common/http/host-allowlist.js';
import { jsonText } from '@slipway/common/json-access.js';
import { ModelCatalogue } from '@slipway/models/model-catalogue.js';
import { apiIn, headersIn } from '@slipway/models/model-check.js';
import { ModelTrial, type TrialCheck } from '@slipway/models/model-trial.js';
import { RateLimit } from '../../auth/rate-limit.js';
import { DomainError } from '../../common/errors/domain-error.js';
import { ServiceHttpClient } from '../../common/http/service-http.client.js';
import { OPEN_ADDRESSES } from '../model-http.client.js';
import { type ModelSelection, ProfilesService } from '../profiles/profiles.service.js';

/** HTTP client for trials: models take their time. */
export class ModelTrialHttpClient extends ServiceHttpClient {}

const TRIALS_AN_HOUR = 10;
const HOUR_MS = 3_600_000;

/** Trials of the models that users name, so many an hour. */
@Injectable()
export class ModelTrialService {
  private readonly recent = new RateLimit(TRIALS_AN_HOUR, undefined, HOUR_MS);
  private readonly trial: ModelTrial;

  constructor(
    http: ModelTrialHttpClient,
    addresses: OutboundAddresses,
    private readonly profiles: ProfilesService,
    private readonly catalogue: ModelCatalogue,
  ) {
    this.trial = new ModelTrial(http, addresses, OPEN_ADDRESSES);
  }

  /** @throws DomainError rate_limited beyond ten an hour; not_found for an unknown profile; InvalidInputError */
  async check(userId: string, selection: ModelSelection): Promise<{ model: string; checks: TrialCheck[] }> {
    const llm = await this.profiles.selected(userId, selection);
    const { isExceeded, resetSeconds } = this.recent.count(userId);
    if (isExceeded) {
      throw tooManyTrials(resetSeconds);
    }
    const model = jsonText(llm, 'model') ?? '';
    const tried = {
      model,
      base_url: jsonText(llm, 'base_url'),
      api_key: jsonText(llm, 'api_key'),
      api: apiIn(llm),
      headers: headersIn(llm),
    };
    const facts = await this.catalogue.facts(model);
    return { model, checks: await this.trial.run(userId, tried, facts) };
  }
}

export function tooManyTrials(retryAfterSeconds: number): DomainError {
  return new DomainError('rate_limited', 'A user may test ten models an hour.', { retryAfterSeconds });
}
