import { ApiExtraModels, ApiProperty, ApiSchema, PickType } from '@nestjs/swagger';
import { OrNull, Shown } from '@slipway/api/openapi/responses.js';
import { OffsetQueryDto } from '@slipway/api/pagination/page.dto.js';
import {
  Choice,
  ChoiceList,
  Decimal,
  Flag,
  FreeObject,
  Identifier,
  Integer,
  Nested,
  NestedList,
  Text,
  TextList,
} from '@slipway/api/validation/field-decorators.js';
import { PROVIDER_TYPES, type ProviderType } from '@slipway/git-providers/git-provider.js';
import { BranchName, ProviderName } from '../../git-providers/repository-fields.js';
import { repositorySegments } from '@slipway/git-providers/repository-name.js';
import { TASK_TYPES, type TaskType } from '../../suggested-tasks/collect-candidates.js';
import { StartConversationDto } from '../../v1/app-conversations/api/dto/start-conversation.dto.js';
import { promptProblem } from '../runs/prompt-template.js';
import { type TriggerDto, TriggerField } from './trigger.dto.js';

export const AUTOMATION_STATES = ['ACTIVE', 'INACTIVE'] as const;

export type AutomationState = (typeof AUTOMATION_STATES)[number];

export const WHEN_BUSY = ['queue', 'skip', 'replace'] as const;

export type WhenBusy = (typeof WHEN_BUSY)[number];

export const AUTOMATION_ID = '6f1c2b7e-93d4-4c58-a1f0-5e7d8c9b0a12';
export const RUN_ID = 'b1f4c9d2-6a7e-4d35-8c90-1e2f3a4b5c6d';

export const PROMPT_EXAMPLE = 'Fix this issue: {{ event.issue.title }} {{ event.issue.body }}';

export const MAX_SECONDS = 86_400;
const MAX_JSON = 32_768;
const MAX_TAGS = 10;
const MAX_TAG_LENGTH = 50;

/** Returns the name in a repository's address; a plain name stays as it is. */
export function repositoryName(url: string): string {
  return (URL.parse(url)?.pathname ?? url).replace(/^\/+|(?:\.git)?\/*$/g, '');
}

@ApiSchema({ name: 'AutomationRepoSource' })
export class RepoDto {
  @Text('`owner/name`, or the address of the repository.', {
    required: true,
    example: 'octo/app',
    maxLength: 500,
    rule: (url) =>
      repositorySegments(repositoryName(url)) === null
        ? 'Expected owner/name, or the https address of a repository.'
        : null,
  })
  url: string;

  @BranchName('Branch to check out.', { nullable: true }) ref: string | null = null;

  @ProviderName('Where it is; not needed for an address of a public host.', { nullable: true })
  provider: ProviderType | null = null;
}

@ApiSchema({ name: 'AutomationTasks' })
export class TasksDto {
  @ChoiceList('Only these types.', { nullable: true, values: TASK_TYPES }) task_types: TaskType[] | null =
    null;

  @ChoiceList('Only of these providers.', { nullable: true, values: PROVIDER_TYPES })
  providers: ProviderType[] | null = null;
  @Integer('How many at a time.', { minimum: 1, maximum: 10, default: 1 }) limit = 1;
}

@ApiSchema({ name: 'AutomationConcurrency' })
export class ConcurrencyDto {
  @Integer('Runs at a time.', { minimum: 1, maximum: 20, default: 1 }) limit?: number;
  @Choice('What a cause does meanwhile.', { values: WHEN_BUSY, default: 'queue' })
  when_busy?: (typeof WHEN_BUSY)[number];
}

@ApiSchema({ name: 'AutomationTemplate' })
export class TemplateDto {
  @Text('Id of the template.', { required: true, example: 'triage', maxLength: 100 }) id: string;
  @Text('Its version.', { required: true, example: '1.0.0', maxLength: 50 }) version: string;

  @FreeObject('What was chosen in its form.', { nullable: true, maxLength: MAX_JSON })
  config: Record<string, unknown> | null = null;
}

const NAMED = { regex: /\S/, expected: 'Expected a name.' };
const NAME = { example: 'Morning triage', maxLength: 500, pattern: NAMED };

/** What both a new automation and a change of one may say. */
class AutomationFieldsDto extends PickType(StartConversationDto, [
  'agent',
  'follow',
  'result_schema',
  'secret_names',
  'git',
  'fork',
]) {
  @Text('For people.', { nullable: true, maxLength: 2_000 }) description?: string | null;

  @Text('What a run does; `{{ event.<JMESPath> }}` stands for a value of the event.', {
    nullIsAbsent: true,
    example: PROMPT_EXAMPLE,
    maxLength: 50_000,
    pattern: { regex: /\S/, expected: 'Expected a text.' },
    rule: promptProblem,
  })
  prompt?: string;

  @Nested('In place of a prompt: the most pressing suggested tasks.', { type: TasksDto, nullable: true })
  tasks?: TasksDto | null;

  @Text('Model profile; the settings by default.', { nullable: true, maxLength: 64 }) model?: string | null;

  @NestedList('The repository to work in.', { type: RepoDto, nullable: true, form: { maxItems: 1 } })
  repos?: RepoDto[] | null;

  @Integer('Seconds of a run; unlimited by default.', { nullable: true, minimum: 1, maximum: MAX_SECONDS })
  timeout?: number | null;

  @Flag('Kept and shown; sandboxes end by the rules of the service.', { nullable: true })
  keep_alive?: boolean | null;

  @Decimal('USD after which a run is stopped; null: no limit. A new automation has 5 unless given.', {
    nullable: true,
    minimum: 0,
  })
  max_budget_per_run?: number | null;

  @Decimal(
    'USD after which no run begins before the next month (UTC); null: no limit. A new automation has 50 unless given.',
    { nullable: true, minimum: 0 },
  )
  max_budget_per_month?: number | null;

  @Integer('Runs within 24 hours.', { minimum: 1, maximum: 1_000, default: 100 }) max_runs_per_day?: number;
  @Nested('How many runs at a time.', { type: ConcurrencyDto }) concurrency?: ConcurrencyDto;

  @TextList('Labels in lower case, `-` for white space.', {
    nullable: true,
    itemLength: MAX_TAG_LENGTH,
    form: { maxItems: MAX_TAGS },
  })
  tags?: string[] | null;

  @Choice('Whether its trigger starts it.', { nullIsAbsent: true, values: AUTOMATION_STATES })
  state?: AutomationState;

  @Flag('Older name of `state`.', { nullIsAbsent: true }) enabled?: boolean;
}

@ApiExtraModels(AutomationFieldsDto)
@ApiSchema({ name: 'CreatePromptAutomationRequest' })
export class CreateAutomationDto extends AutomationFieldsDto {
  @Text('Name of the automation.', { required: true, ...NAME }) name: string;

  @TriggerField({ required: true }) trigger: TriggerDto;

  @Nested('Makes one automation; a repetition answers that.', { type: TemplateDto, nullable: true })
  template?: TemplateDto | null;
}

@ApiSchema({ name: 'UpdateAutomationRequest' })
export class UpdateAutomationDto extends AutomationFieldsDto {
  @Text('Name of the automation.', { nullIsAbsent: true, ...NAME }) name?: string;
  @TriggerField({ nullIsAbsent: true }) trigger?: TriggerDto;
}

export class AutomationIdDto {
  @Identifier('Id of the automation.', { required: true, example: AUTOMATION_ID }) id: string;
}

export class ListAutomationsQueryDto extends OffsetQueryDto {
  @Choice('`others`: none, as everybody sees only their own.', { values: ['me', 'others'], example: 'me' })
  created_by?: 'me' | 'others';

  @Text('Only those with this tag.', { example: 'triage', maxLength: MAX_TAG_LENGTH }) tag?: string;
}

const MAX_PAYLOAD = 1_000_000;
const OBJECT = { nullIsAbsent: true, maxLength: MAX_PAYLOAD };
const FLAG_OR_NULL = { type: Boolean, nullable: true };

@ApiSchema({ name: 'SampleEvent' })
export class SampleEventDto {
  @Text('Which event it is.', { required: true, example: 'issues.labeled', maxLength: 520 }) key: string;

  @FreeObject('What the host sends.', { required: true, example: {}, maxLength: MAX_PAYLOAD })
  payload: Record<string, unknown>;
}

/** A trigger alone, or a whole draft. */
@ApiSchema({ name: 'ValidateDraftRequest' })
export class ValidateDraftDto {
  @FreeObject('When it starts.', OBJECT) trigger?: Record<string, unknown>;

  @Nested('Tried with the trigger; the last of its source by default.', {
    type: SampleEventDto,
    nullable: true,
  })
  event?: SampleEventDto | null;

  @Identifier('Tried in place of `event`: one that has come, whose payload is still there.', {
    example: AUTOMATION_ID,
  })
  event_id?: string;

  @Text('Where the draft is going to be sent.', { example: '/v1/preset/prompt', maxLength: 100 })
  endpoint?: string;

  @FreeObject('The body that is going to be sent there.', OBJECT) draft?: Record<string, unknown>;

  @FreeObject('What a host sends, to try the draft with.', { nullable: true, maxLength: MAX_PAYLOAD })
  sampleEvent?: Record<string, unknown> | null;
}

class DraftProblemDto {
  @OrNull('trigger.schedule') field: string | null;
  @ApiProperty({ example: 'value_error' }) code: string;
  @ApiProperty({ example: 'Expected five fields of cron.' }) message: string;
}

@ApiSchema({ name: 'ValidateDraftResponse' })
export class DraftReportDto {
  @ApiProperty({ example: true }) valid: boolean;
  @ApiProperty({ type: [DraftProblemDto], example: [] }) errors: DraftProblemDto[];
  @Shown('The next five times of a schedule.', ['2026-11-23T08:00:00.000Z'], { type: [String] })
  next_times: string[];
  @Shown('Null without an event.', null, FLAG_OR_NULL) matched: boolean | null;
  @Shown('Why it does not match.', [], { type: [String] }) reasons: string[];
  @Shown('As `matched`.', null, FLAG_OR_NULL) sampleEventMatched: boolean | null;
}
