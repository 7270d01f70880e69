import { ApiProperty, ApiSchema } from '@nestjs/swagger';
import { OrNull } from '../../common/openapi/responses.js';
import type { EventSubject } from './event-subject.js';

@ApiSchema({ name: 'AutomationEventSubject' })
export class EventSubjectDto implements EventSubject {
  @ApiProperty({ example: 'issues.labeled' }) key: string;
  @ApiProperty({ type: 'integer', nullable: true, example: 23 }) number: number | null;
  @OrNull('Totals are wrong') title: string | null;
  @OrNull('https://github.com/octo/app/issues/23') url: string | null;
  @OrNull('ada') by: string | null;
}
