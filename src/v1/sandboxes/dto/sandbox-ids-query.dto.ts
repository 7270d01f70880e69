import { RepeatedText } from '../../../common/validation/repeated-text.decorator.js';

/** Query of `GET /api/v1/sandboxes`. */
export class SandboxIdsQueryDto {
  @RepeatedText({
    description: 'Id of a sandbox; repeat it for more, at most 100.',
    required: true,
    most: 100,
    example: ['3Yv5mQ8hZk2LrTnBx7Wc0d'],
  })
  id: string[];
}
