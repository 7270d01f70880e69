import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { OrNull, Shown } from '../../common/openapi/responses.js';
import { FreeObject, Nested, Text } from '../../common/validation/field-decorators.js';

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

  @Nested('An event that the trigger is tried with; by default the last one of the source.', {
    type: SampleEventDto,
    nullable: true,
  })
  event?: SampleEventDto | null;

  @Text('Where the draft is going to be sent.', { example: '/v1/preset/prompt', maxLength: 100 })
  endpoint?: string;

  @FreeObject('The body that is going to be sent there.', OBJECT) draft?: Record<string, unknown>;

  @FreeObject('What a host sends, to try the trigger of the draft with.', {
    nullable: true,
    maxLength: MAX_PAYLOAD,
  })
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
