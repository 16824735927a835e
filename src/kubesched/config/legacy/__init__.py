"""Converts configurations of older kube-schedulers to KubeSchedulerConfiguration v1.

    Policy, provider ──────────────> OldProfile ──┐
                                                  ├─ successors ─> plugin_sets ──> pruning ──> v1
    v1alpha1 … v1beta2 ─ fields ───> OldProfile ──┘                                  ^
    v1beta3 ─────────────────────────────────────────────────────────────────────────┘

Until v1beta2, plugins were listed extension point by extension point, on top of defaults that
differed by release. So an old profile is resolved to the plugins that ran at each point
(`OldProfile`), old plugins and their arguments are replaced by today's (`successors`), and the
result is written as the difference to today's defaults (`plugin_sets`). Fields outside of profiles
are converted version by version (`fields`). A report lists what each part was converted to.
"""
