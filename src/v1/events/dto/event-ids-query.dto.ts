import { RepeatedText } from '../../../common/validation/repeated-text.decorator.js';

/** Query of `GET …/events`. */
export class EventIdsQueryDto {
  @RepeatedText({
    description: 'Ids of events, each as a parameter of its own.',
    required: true,
    most: 100,
    example: ['b7d1c9de-0f0b-4c59-9d5a-1c2b3a4d5e6f'],
  })
  id: string[];
}
